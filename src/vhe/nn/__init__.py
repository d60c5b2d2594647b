"""The mathematics, one idea a file."""

import warnings

# compressed sparse rows are only multiplied with dense matrices here, which is stable enough
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
