"""The command line, as `headwater` and as `python -m headwater`."""

from headwater.commands.starting import end_at_once_on_signals


def main() -> None:
    """The console script."""
    end_at_once_on_signals()
    from headwater.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
