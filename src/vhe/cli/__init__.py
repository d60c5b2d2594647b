"""The command `vhe`: its verbs, and how a user's mistake becomes one line and exit status 2."""

import io
import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Parameter
from cyclopts.help import DefaultFormatter, PanelSpec
from rich import box

from vhe import __version__
from vhe.cli import (
    add,
    bench,
    data,
    demo,
    doctor,
    embed,
    evaluate,
    explain,
    fit,
    map,
    reproduce,
    score,
    serve,
    suggest,
)
from vhe.errors import VHEError

# Each verb, how it is called, and an example.
VERBS: tuple[tuple[Callable[..., int | None], str, str], ...] = (
    (demo.demo, "[--out DIR]", "--out demo"),
    (data.data, "[NAME]", "cora"),
    (fit.fit, "SOURCE --out MODEL", "cora --out runs/cora --seed 0 --set homophily=0.95"),
    (embed.embed, "MODEL --out FILE", "runs/cora --out cora.parquet --std"),
    (score.score, "MODEL A B | MODEL --pairs FILE", "runs/cora 12 40 --json"),
    (suggest.suggest, "MODEL ID | MODEL --all --out FILE", "runs/cora 12 -k 5"),
    (explain.explain, "MODEL A B", "runs/cora 12 40 --html link.html"),
    (
        add.add,
        "MODEL --vertices FILE --out MODEL2",
        "runs/cora --vertices new.csv --edges links.csv --out runs/cora2",
    ),
    (map.map, "MODEL --out FILE", "runs/cora --out cora.html"),
    (serve.serve, "MODEL [--port N]", "runs/cora --port 8765"),
    (
        evaluate.evaluate,
        "link|classify|unseen SOURCE",
        "link cora --method vhe,tfidf --ratio 15,55 --seeds 0-4",
    ),
    (
        reproduce.reproduce,
        "[link|classify|unseen|degree|...|all]",
        "link --datasets cora --methods tfidf,vhe --seeds 0-2",
    ),
    (reproduce.report, "", "--results results --out docs/results"),
    (bench.bench, "[NAME]", "alignment --datasets cora,hepth"),
    (doctor.doctor, "", "--json"),
)


def command() -> App:
    """The command with all its verbs; each verb's help ends with an example."""
    app = App(
        name="vhe",
        help="Embeddings and link probabilities for networks whose vertices carry text.",
        help_epilogue="Start with: vhe demo. Help on a verb: vhe fit --help",
        help_format="plaintext",
        help_formatter=DefaultFormatter(panel_spec=PanelSpec(box=box.HORIZONTALS)),
        version=__version__,
        default_parameter=Parameter(negative=(), show_default=False),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_int_as_exit_code_else_zero",
    )
    for place, (verb, usage, example) in enumerate(VERBS):
        name = verb.__name__
        app.command(
            verb,
            usage=f"Usage: vhe {name} {usage} [OPTIONS]",
            help_epilogue=f"Example: vhe {name} {example}",
            sort_key=place,
        )
    app.register_install_completion_command(help="Complete verbs and options in your shell.")
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, or 2 for a mistake that the user can mend."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="replace"
        )  # a terminal that lacks a letter is no reason to stop
    try:
        status = int(command()(tokens))
        sys.stdout.flush()
        return status
    except VHEError as error:
        return _fail(str(error))
    except CycloptsError as error:
        verb = " ".join(["vhe", *(error.command_chain or ())])
        return _fail(f"{str(error).strip().rstrip('.')}; see {verb} --help")
    except KeyboardInterrupt:
        return _fail("interrupted", status=130)
    except BrokenPipeError:
        # Whoever read us has gone; what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        return _fail("there is not enough memory for this; try a smaller batch_size or max_words")
    except OSError as error:
        return _fail(_sentence(error))


def _fail(message: str, status: int = 2) -> int:
    print("vhe:", " ".join(message.split()), file=sys.stderr)
    return status


def _sentence(error: OSError) -> str:
    """What the operating system refused, as a sentence: the file first, then the reason."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename else reason
