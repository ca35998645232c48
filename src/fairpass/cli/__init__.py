"""The command line: parses, calls, prints."""


def main() -> None:
    """Run the `fairpass` command."""
    from fairpass.cli.app import app

    app()
