"""`python -m fairpass` is the `fairpass` command."""

from fairpass.cli import main

if __name__ == "__main__":
    main()
