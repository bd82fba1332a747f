"""What ./run does, in plain standard-library Python: a private environment, then the verb in it.

Start with verbs.py, the menu's other side; then environment.py, what is made and when it is made again. pip_settings.py
carries the user's pip configuration over to uv, compiler.py says whether kernels can be compiled here, steps.py shows
progress, fetch_sdist.py downloads data, spark.py adds Spark when it is first needed. Nothing here is part of the
package, and nothing of the package is imported here.
"""
