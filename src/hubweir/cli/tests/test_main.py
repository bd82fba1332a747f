import subprocess
import sys
from importlib import import_module

import pytest
from click.testing import CliRunner

from hubweir.cli.main import COMMANDS, hubweir


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_menu_exists_and_explains_itself(name: str) -> None:
    shown = CliRunner().invoke(hubweir, [name, "--help"])
    assert shown.exit_code == 0
    assert "Usage:" in shown.output


def test_menu_imports_no_command() -> None:
    program = "import sys; from hubweir.cli.main import hubweir; print('hubweir.cli.serve' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "False"
    assert import_module("hubweir.cli.serve")  # so the name asked for is the right one


def test_refusal_is_one_line_and_exit_code_1() -> None:
    nobody = "Endpoint=sb://127.0.0.1:9;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    command = [sys.executable, "-m", "hubweir", "eventhub", "list", "--connection-string", nobody]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("hubweir: cannot reach 127.0.0.1:9")
    assert "Traceback" not in done.stderr


def test_a_mistyped_command_is_shown_under_its_own_name() -> None:
    command = [sys.executable, "-m", "hubweir", "eventhub", "lst"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: hubweir eventhub ") and "Did you mean 'list'" in done.stderr
