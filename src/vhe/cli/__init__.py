"""The command `vhe`: its subcommands, and how a user's error becomes one line and exit status 2."""

import io
import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Parameter

from vhe import __version__
from vhe.cli import (
    add,
    bench,
    config,
    data,
    demo,
    doctor,
    embed,
    evaluate,
    explain,
    fit,
    map,
    report,
    report_tables,
    reproduce,
    score,
    serve,
    suggest,
)
from vhe.cli.help import description, formatter
from vhe.cli.output import print_status, surviving_stderr
from vhe.cli.usage_errors import usage_error
from vhe.errors import VHEError
from vhe.runtime.memory import check_address_space, is_out_of_memory

OUT_OF_MEMORY = (
    "out of memory; use a machine with more memory, raise its limit (ulimit "
    "-v), or reduce the settings max_words and latent_dim"
)
LIGHT = {"--help", "-h", "--version", "config"}  # import no numerical library

# Each command, its usage, and an example.
COMMANDS: tuple[tuple[Callable[..., int | None], str, str], ...] = (
    (demo.demo, "[--out DIR]", "--out demo"),
    (data.data, "[SOURCE]", "cora"),
    (fit.fit, "SOURCE --out MODEL", "cora --out runs/cora --seed 0 --set latent_dim=100"),
    (config.config, "[graph|pair]", "graph"),
    (embed.embed, "MODEL --out FILE", "runs/cora --out cora.parquet --std"),
    (score.score, "MODEL A B | MODEL --pairs FILE", "runs/cora 12 40 --json"),
    (suggest.suggest, "MODEL [ID]", "runs/cora -k 50 --out missing.csv"),
    (explain.explain, "MODEL A B", "runs/cora 12 40 --html link.html"),
    (
        add.add,
        "MODEL --vertices FILE --out MODEL2",
        "runs/cora --vertices new.csv --edges links.csv --out runs/cora2",
    ),
    (map.map, "MODEL --out FILE", "runs/cora --out cora.html"),
    (report.report, "MODEL --out FILE", "runs/cora --out report.html"),
    (serve.serve, "MODEL [--port N]", "runs/cora --port 8765"),
    (
        evaluate.evaluate,
        "link|classify|unseen SOURCE",
        "link cora --method vhe,tfidf --ratio 15,55 --seeds 0-4",
    ),
    (
        reproduce.reproduce,
        "[TASK]",
        "link --datasets cora --methods tfidf,vhe --seeds 0-2",
    ),
    (
        report_tables.report_tables,
        "[--format latex|csv]",
        "--format latex --task link --datasets cora --measures auc",
    ),
    (bench.bench, "[NAME]", "alignment --datasets cora,hepth"),
    (doctor.doctor, "[MODEL]", "runs/cora"),
)


def name_of(command: Callable[..., int | None]) -> str:
    """Return the name of a command on the command line."""
    return command.__name__.replace("_", "-")


def make_app() -> App:
    """Build the command with all its subcommands; the help of each ends with an example."""
    app = App(
        name="vhe",
        help="Embeddings and link probabilities for networks whose vertices carry text.",
        help_epilogue="Get started: vhe demo. Help on a command: vhe COMMAND --help",
        help_format="plaintext",
        help_formatter=formatter(),
        version=__version__,
        default_parameter=Parameter(negative=(), show_choices=False),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_int_as_exit_code_else_zero",
    )
    for position, (command, usage, example) in enumerate(COMMANDS):
        name = name_of(command)
        app.command(
            command,
            help=description(command),
            usage=" ".join(filter(None, ("Usage: vhe", name, usage, "[OPTIONS]"))),
            help_epilogue=f"Example: vhe {name} {example}",
            sort_key=position,
        )
    app.register_install_completion_command(help="Install completion for your shell.")
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, or 2 for an error that the user can fix."""
    words = sys.argv[1:] if argv is None else argv
    tokens = ["/dev/stdin" if word == "-" else word for word in words]  # an argument, no option
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as in vhe data >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Replace characters that the terminal's encoding lacks instead of failing.
        sys.stdout.reconfigure(errors="replace")
    try:
        if not LIGHT & {*tokens[:1], *tokens[-1:]}:
            check_address_space()
        status = int(make_app()(tokens))
        if tokens[:1] == ["fit"] and {"--help", "-h"} & set(tokens):
            fit.print_settings_help(tokens)
        sys.stdout.flush()
        return status
    except VHEError as error:
        return _fail(OUT_OF_MEMORY if is_out_of_memory(error) else str(error))
    except CycloptsError as error:
        command = " ".join(["vhe", *(error.command_chain or ())])
        names = [name_of(function) for function, _, _ in COMMANDS]
        return _fail(f"{usage_error(error, names)}; see {command} --help")
    except KeyboardInterrupt:
        return _fail("interrupted", status=130)
    except BrokenPipeError:
        # The reader has closed the pipe; flushing the buffer at exit must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, RuntimeError, SystemError, ImportError, OSError) as error:
        if is_out_of_memory(error):
            return _fail(OUT_OF_MEMORY)
        if isinstance(error, OSError):
            return _fail(_sentence(error))
        raise
    finally:
        with surviving_stderr():  # otherwise Python exits with status 120
            sys.stderr.flush()


def _fail(message: str, status: int = 2) -> int:
    sentence = " ".join(message.split()).removesuffix(".")
    print_status(f"vhe: {sentence}")
    return status


def _sentence(error: OSError) -> str:
    """Format an operating system error: the file first, then the reason."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename else reason
