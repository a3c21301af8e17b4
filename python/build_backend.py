"""Generates the documents' dataclasses, then builds the package with maturin (PEP 517)."""

import document_types
import maturin
from maturin import (  # noqa: F401 - re-exports hooks that need no dataclasses
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    document_types.generate()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    document_types.generate()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    document_types.generate()
    return maturin.build_sdist(sdist_directory, config_settings)
