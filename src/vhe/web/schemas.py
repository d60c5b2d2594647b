"""Requests and responses of the HTTP API, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

Key = str | int | float | bool | None  # an id or a label; others are printed
Decided = Literal["accepted", "rejected", "postponed"]
ReviewState = Literal["open", "accepted", "rejected", "postponed"]
Layout = Literal["quick", "final"]

MAX_NEW = 1000  # vertices or links in a request


class Strict(BaseModel):
    """A request: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Error(BaseModel):
    error: str = Field(description="one sentence")


class Entry(BaseModel):
    """A vertex with the beginning of its text."""

    number: int = Field(description="vertex number, starting at 0")
    id: Key
    label: Key
    text: str


class Network(BaseModel):
    name: str
    vertices: int
    links: int
    labels: int
    dimensions: int
    density: float = Field(description="share of all pairs that are linked")
    version: int = Field(description="increases with every change of the map")
    numbering: int = Field(description="changes when vertex numbers change their meaning")
    writable: bool = Field(description="whether vertices and links can be added")


class Region(BaseModel):
    name: str = Field(description="words that distinguish the texts of the region")
    x: int
    y: int
    vertices: int


class Map(BaseModel):
    """All vertices; lists follow vertex numbers, links are pairs of numbers in one flat list."""

    name: str
    version: int
    numbering: int
    layout: Layout = Field(description="quick: principal axes, replaced when the final is ready")
    ids: list[str]
    x: list[int]
    y: list[int]
    labels: list[str] = Field(description="names of labels, most frequent first")
    label: list[int] = Field(description="position in labels, -1: none")
    regions: list[Region]
    texts: list[str]
    links: list[int]
    suggested: list[int]
    probability: list[float]
    uncertainty: list[float]


class LayoutState(BaseModel):
    layout: Layout
    version: int
    numbering: int


class Vertex(Entry):
    uncertainty: float = Field(description="mean standard deviation of the embedding")
    links: list[Entry]


class Links(Entry):
    total: int
    links: list[Entry]


class Found(BaseModel):
    total: int
    numbers: list[int]
    vertices: list[Entry]


class SuggestedEntry(Entry):
    probability: float
    state: ReviewState


class VertexSuggestions(Entry):
    links: list[SuggestedEntry]


class Similar(Entry):
    similarity: float = Field(description="cosine of the embeddings")


class Nearest(Entry):
    nearest: list[Similar]


class Embedding(Entry):
    embedding: list[float]
    std: list[float] = Field(description="standard deviation; one number if it is the same in all")


class Side(Entry):
    words: list[tuple[str, float]] = Field(description="words with their weights")
    segments: list[tuple[str, float]] = Field(description="the text, split at weighted words")


class PairExplanation(BaseModel):
    source: Side
    target: Side
    linked: bool
    probability: float = Field(description="of a link in the network, at its density")
    balanced_probability: float = Field(description="of a link in a balanced sample")
    text_share: float
    structure_share: float
    score: float
    parts: dict[str, float] = Field(description="parts of the log odds")


def example(**values: Any) -> ConfigDict:
    """The example of a request in the OpenAPI document."""
    return ConfigDict(json_schema_extra={"example": values})


class NewText(Strict):
    """A text that is not in the network."""

    model_config = example(text="graph embedding")
    text: str = Field(min_length=1, description="the text; unknown words are ignored")
    k: int = Field(10, ge=1, le=100, description="number of nearest vertices to return")


class LikelyLink(Similar):
    probability: float


class EmbeddedText(BaseModel):
    x: float
    y: float
    words: int
    known: int = Field(description="number of words of the vocabulary")
    uncertainty: float
    nearest: list[LikelyLink]


class Path(BaseModel):
    source: Entry
    target: Entry
    length: int | None = Field(description="number of links; null: not connected")
    vertices: list[Entry] = Field(description="the path with both ends; empty: not connected")


class SuggestedLink(BaseModel):
    source: Entry
    target: Entry
    probability: float
    duplicate: bool = Field(description="both texts are nearly the same")
    state: ReviewState
    decided: str | None = Field(description="time of the decision, ISO 8601")


class Counts(BaseModel):
    open: int
    accepted: int
    rejected: int
    postponed: int


class Suggestions(BaseModel):
    ready: bool = Field(description="false while the ranking is computed")
    total: int = Field(description="links that match the filters")
    reviewed: int = Field(description="accepted and rejected links in all")
    counts: Counts = Field(description="links that match the other filters, by state")
    items: list[SuggestedLink]


class DecisionState(Strict):
    model_config = example(state="accepted")
    state: Decided
    numbering: int | None = Field(
        None, description="status 409 if vertex numbers have changed since this numbering"
    )


class SavedDecision(BaseModel):
    source: Key
    target: Key
    state: Decided
    probability: float = Field(description="predicted when it was decided")
    decided: str


NewKey = StrictStr | StrictInt  # true is not 1


class NewVertex(Strict):
    id: NewKey
    text: str
    label: NewKey | None = None


class NewVertices(Strict):
    """Texts to be added, with their links."""

    model_config = example(
        vertices=[{"id": "new", "text": "a new abstract"}], links=[["new", "p12"]]
    )
    vertices: list[NewVertex] = Field(min_length=1, max_length=MAX_NEW)
    links: list[tuple[NewKey, NewKey]] = Field(
        [], max_length=MAX_NEW, description="pairs of ids, each with at least one new id"
    )


class NewLinks(Strict):
    """Links between vertices of the network."""

    model_config = example(links=[["p12", "p40"]])
    links: list[tuple[NewKey, NewKey]] = Field(
        min_length=1, max_length=MAX_NEW, description="pairs of ids"
    )


class Changed(BaseModel):
    version: int
    numbering: int
    vertices: list[Entry] = Field(description="the new vertices")


class Reloaded(BaseModel):
    version: int
    numbering: int


class Health(BaseModel):
    status: str


class PrecisionBin(BaseModel):
    lower: float
    upper: float
    reviewed: int
    accepted: int
    predicted: float | None = Field(description="mean predicted probability")
    precision: float | None = Field(description="share of accepted links")
    low: float = Field(description="95 % interval of the precision")
    high: float


class Precision(BaseModel):
    reviewed: int
    accepted: int
    bins: list[PrecisionBin]
