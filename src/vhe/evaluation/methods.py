"""The methods that can be compared, by the names the command knows; none is imported before use."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.config import VHEConfig
    from vhe.estimators import VHE
    from vhe.predict.scoring import Method

METHODS: Mapping[str, str] = {  # where each is: module:class, or a function that makes one
    "vhe": "vhe.estimators:VHE",
    "vhe-pairs": "vhe.evaluation.methods:pairwise_vhe",
    "vhe-paper": "vhe.evaluation.methods:paper_vhe",
    "vhe-texts": "vhe.baselines.unseen:VHEOfAllTexts",
    "pwa": "vhe.baselines.pwa:PWA",
    "mmb": "vhe.baselines.mmb:MMB",
    "line": "vhe.baselines.line:LINE",
    "node2vec": "vhe.baselines.node2vec:Node2Vec",
    "deepwalk": "vhe.baselines.deepwalk:DeepWalk",
    "tadw": "vhe.baselines.tadw:TADW",
    "cene": "vhe.baselines.cene:CENE",
    "cane": "vhe.baselines.cane:CANE",
    "wane": "vhe.baselines.wane:WANE",
    "naive-vae": "vhe.baselines.naive_vae:NaiveVAE",
    "vgae": "vhe.baselines.vgae:VGAE",
    "dmte": "vhe.baselines.dmte:DMTE",
    "cane-text": "vhe.baselines.unseen:CANEText",
    "cane-mlp": "vhe.baselines.unseen:CANEMLP",
    "wane-text": "vhe.baselines.unseen:WANEText",
    "wane-mlp": "vhe.baselines.unseen:WANEMLP",
    "pwa-text": "vhe.baselines.unseen:PWAText",
    "pwa-mlp": "vhe.baselines.unseen:PWAMLP",
    "tfidf": "vhe.baselines.tfidf:TFIDF",
    "diffused-text": "vhe.baselines.diffused_text:DiffusedText",
}


def names() -> tuple[str, ...]:
    """The methods that this installation has."""
    return tuple(name for name, home in METHODS.items() if find_spec(home.partition(":")[0]))


def check_name(name: str) -> None:
    """Raise `VHEError` where there is no such method; the error names what may have been meant."""
    known = names()
    if name in known:
        return
    near = difflib.get_close_matches(name.lower(), known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise VHEError(f"there is no method named {name!r}: {hint}")


def make(name: str, seed: int, **settings: Any) -> Method:
    """A method, not fitted yet.

    Parameters
    ----------
    name : one of `names`.
    seed : where its chance starts; a method without chance has no use for it.
    settings : parameters of the method, instead of its own choices.
    """
    check_name(name)
    module, _, attribute = METHODS[name].partition(":")
    maker = getattr(import_module(module), attribute)
    known = inspect.signature(maker).parameters
    usual: dict[str, Any] = {}
    if "random_state" in known or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        usual["random_state"] = seed
    if "verbose" in known:  # progress is told a method at a time by whoever compares them
        usual["verbose"] = False
    if isinstance(settings.get("weights"), Mapping):  # as settings in a file have them
        from vhe.baselines.contextual import CANEObjective

        settings["weights"] = CANEObjective(**settings["weights"])
    method: Method = maker(**usual | settings)
    return method


def pairwise_vhe(*, random_state: int, **settings: Any) -> VHE:
    """VHE as the paper has it, the bound of pairs alone and a learned structure table, but from a
    start that can learn: words from the corpus, means that begin at them, a target that stays."""
    from vhe.config import VHEConfig

    bound_alone = VHEConfig(
        structure="learned", embedding="average", link_weight=0.0, validation=0.05, steps=200
    )
    return _vhe(bound_alone, random_state, settings)


def paper_vhe(*, random_state: int, **settings: Any) -> VHE:
    """VHE with the settings of the paper to the letter, but for those that are given."""
    from vhe.config import VHEConfig

    return _vhe(VHEConfig.paper(), random_state, settings)


def _vhe(config: VHEConfig, seed: int, settings: Mapping[str, Any]) -> VHE:
    from vhe.estimators import VHE

    changed = config.replace(**settings)
    return VHE.from_config(changed, random_state=seed).set_params(verbose=False)
