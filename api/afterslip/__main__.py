"""``python -m afterslip`` is the command ``afterslip``."""

from afterslip.cli.main import main

main()
