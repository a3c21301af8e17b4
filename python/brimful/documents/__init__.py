"""The documents as dataclasses. Written by document_types.py from schema/."""

from .calibration import Calibration as Calibration
from .forecast import Forecast as Forecast
from .model import Model as Model
from .profile import Profile as Profile
from .record import Record as Record
from .server import Server as Server
from .site import Site as Site
from .solution import Solution as Solution
from .survey import Survey as Survey
from .what_if import WhatIf as WhatIf
