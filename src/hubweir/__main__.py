"""python -m hubweir: the command line."""

from hubweir.cli.main import main

if __name__ == "__main__":
    main()
