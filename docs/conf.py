"""How the manual is built: `make docs`, by Sphinx, into site/. Nothing in it asks another host."""

import importlib.util
import sys
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml

import vhe

HERE = Path(__file__).parent

project, author = "vhe", "The vhe contributors"
copyright = "the vhe contributors, Apache License 2.0"
version = release = vhe.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["results/index.html"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# what lies beside docs/ is linked as a file, and images of README are ours
suppress_warnings = ["myst.xref_missing", "toc.not_included"]

html_theme = "furo"
html_title = f"vhe {vhe.__version__}"
html_copy_source = False
html_extra_path = ["extra"] if (HERE / "extra").exists() else []
html_theme_options = {"footer_icons": []}
html_static_path = ["static"]
html_css_files = ["vhe.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False


def as_mathml(translator, node):
    """An equation as MathML, which browsers draw by themselves."""
    block = node.__class__.__name__ == "math_block"
    translator.body.append(tex2mathml(node.astext(), as_block=block))
    from docutils.nodes import SkipNode

    raise SkipNode


def write_settings(_app):
    """docs/settings.md, from the fields of VHEConfig as they are now."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = generate
    spec.loader.exec_module(generate)
    (HERE / "settings.md").write_text(generate.settings(), encoding="utf-8")


def setup(app):
    from docutils import nodes

    app.connect("builder-inited", write_settings)
    app.add_node(nodes.math, override=True, html=(as_mathml, None))
    app.add_node(nodes.math_block, override=True, html=(as_mathml, None))
