"""Registry of the methods that can be compared; each is imported on first use.

Other packages add methods by entry points (`vhe.methods`), and any class can be named as
``package.module:Class``.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vhe.errors import VHEError
from vhe.runtime import plugins

if TYPE_CHECKING:
    from vhe.estimators import VHE, PairVHE
    from vhe.predict.scoring import Method

METHODS: Mapping[str, str] = {  # "module:class" or "module:factory function"
    "vhe": "vhe.estimators:VHE",
    "vhe-one-scale": "vhe.evaluation.methods:one_scale_vhe",
    "pair-vhe": "vhe.estimators:PairVHE",
    "pair-vhe-paper": "vhe.evaluation.methods:paper_pair_vhe",
    "pair-vhe-paper-untrained": "vhe.evaluation.methods:untrained_paper_pair_vhe",
    "vhe-texts": "vhe.baselines.unseen:VHEOfAllTexts",
    "pwa": "vhe.baselines.pwa:PWA",
    "pwa-controlled": "vhe.baselines.pwa:ControlledPWA",
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
    "gcn-mlp": "vhe.baselines.gnn:gcn_mlp",
    "gcn-ncn": "vhe.baselines.gnn:gcn_ncn",
    "sage-mlp": "vhe.baselines.gnn:sage_mlp",
    "sage-ncn": "vhe.baselines.gnn:sage_ncn",
    "gcn-mlp-sentences": "vhe.baselines.gnn:gcn_mlp_sentences",
    "gcn-ncn-sentences": "vhe.baselines.gnn:gcn_ncn_sentences",
    "sage-mlp-sentences": "vhe.baselines.gnn:sage_mlp_sentences",
    "sage-ncn-sentences": "vhe.baselines.gnn:sage_ncn_sentences",
    "node2vec-text": "vhe.baselines.node2vec_text:Node2VecText",
    "sentences": "vhe.baselines.sentences:SentenceVectors",
    "adamic-adar": "vhe.baselines.heuristics:AdamicAdar",
    "katz": "vhe.baselines.heuristics:Katz",
    "tfidf": "vhe.baselines.tfidf:TFIDF",
    "diffused-text": "vhe.baselines.diffused_text:DiffusedText",
}

CONTRACT = ("fit", "score_indices", "score_matrix")  # what any method must have before its fit


def names() -> tuple[str, ...]:
    """Return the names of all methods, those of other packages last."""
    return *METHODS, *(name for name in plugins.names("vhe.methods") if name not in METHODS)


def check_name(name: str) -> None:
    """Raise `VHEError` for an unknown method; the message names similar ones."""
    _maker(name)


def _maker(name: str) -> Callable[..., Any]:
    """Return the class or function that makes a method."""
    if ":" in name or name in METHODS:
        maker: Callable[..., Any] | None = plugins.load_object(METHODS.get(name, name))
    else:
        maker = plugins.load("vhe.methods", name)
    if maker is None:
        known = names()
        near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.7)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        raise VHEError(f"unknown method {name!r}: {hint}")
    if not callable(maker):
        raise VHEError(f"{name}: {maker!r} is not a class or function that returns a method")
    return maker


def make(name: str, seed: int, **settings: Any) -> Method:
    """Return an unfitted method.

    Parameters
    ----------
    name : one of `names`, or ``package.module:Class``.
    seed : random seed; ignored by deterministic methods.
    settings : parameters of the method that differ from its defaults.
    """
    maker = _maker(name)
    known = inspect.signature(maker).parameters
    common: dict[str, Any] = {}
    if "random_state" in known or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        common["random_state"] = seed
    if "verbose" in known:  # the caller reports progress by experiment
        common["verbose"] = False
    if isinstance(settings.get("weights"), Mapping):  # as read from a file
        from vhe.baselines.contextual import CANEObjective

        settings["weights"] = CANEObjective(**settings["weights"])
    method: Method = maker(**common | settings)
    missing = [part for part in CONTRACT if not hasattr(method, part)]
    if missing:
        raise VHEError(f"{name}: a method must have {', '.join(CONTRACT)}, but lacks {missing[0]}")
    return method


def one_scale_vhe(*, random_state: int, **settings: Any) -> VHE:
    """Return `VHE` that scores pairs by the cosine of its embedding, without other features."""
    from vhe.estimators import VHE

    return VHE(random_state=random_state, verbose=False, **{"link_features": ""} | settings)


def paper_pair_vhe(*, random_state: int, **settings: Any) -> PairVHE:
    """Return `PairVHE` with the paper's settings, except for those that are given."""
    from vhe.config import PairVHEConfig
    from vhe.estimators import PairVHE

    config = PairVHEConfig.paper().replace(**settings)
    model = PairVHE.from_config(config, random_state=random_state)
    model.verbose = False
    return model


def untrained_paper_pair_vhe(*, random_state: int, **settings: Any) -> PairVHE:
    """Return `PairVHE` with the paper's settings and without any training step."""
    return paper_pair_vhe(random_state=random_state, **{"steps": 0, "epochs": 0.0} | settings)
