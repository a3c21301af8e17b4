"""The cost of counting 16 classes with nginx-module-vts, beside that of the Server Module (`overhead-nginx-classes`).

nginx-module-vts (https://github.com/vozlt/nginx-module-vts) is built from the sources that `--vts` names, with the
arguments of the installed nginx. It cannot be switched at run time, so two servers of the same configuration run, one
of them with the module. Each has its own load. In each slice only one load runs, and the other one is stopped, so that
the slices come in quartets as in toggle.py. Both servers have the Server Module, which is switched off.
"""

import shlex
import shutil
import subprocess
from pathlib import Path

from ..monitor.case import Case, Figure, Outcome
from ..side_by_side.tools import Failed
from . import toggle
from .bed import Bed
from .overhead import CLASSES, CLIENTS, QUICK_STARTS, START_S, WORKERS, class_flags, class_rules, files

# The sources of nginx in Debian's package nginx-dev.
NGINX_SOURCES = Path("/usr/share/nginx/src")
# Length of a slice, in seconds. After a pause, a load needs some milliseconds until all of its connections are busy
# again.
SLICE_S = 0.1
STARTS = 8
# nginx is built with -Werror, but newer compilers print more warnings.
NO_ERRORS = "-Wno-error"

HTTP = """\
vhost_traffic_status_zone;
map $uri $class {{
    default other;
{classes}}}
vhost_traffic_status_filter_by_set_key $class classes::all;
"""


def http_configuration() -> str:
    """The configuration by which nginx-module-vts counts the classes of `class_rules`."""
    return HTTP.format(classes="".join(f"    ~^/{name}/ {name};\n" for name in CLASSES))


def configure_arguments(version: str, module: Path) -> list[str]:
    """The arguments of nginx's `configure` that build only this module for an nginx. `version` is the output of
    `nginx -V`."""
    given = shlex.split(version.partition("configure arguments:")[2])
    options = [argument.partition("=")[2] for argument in given if argument.startswith("--with-cc-opt=")]
    kept = [
        argument
        for argument in given
        if not argument.startswith(("--add-module=", "--add-dynamic-module=", "--builddir=", "--with-cc-opt="))
        and not argument.endswith("=dynamic")
    ]
    return [*kept, f"--with-cc-opt={' '.join([*options, NO_ERRORS])}", f"--add-dynamic-module={module}"]


def build(bed: Bed) -> Path:
    """Builds nginx-module-vts for the installed nginx."""
    if not (bed.vts / "config").is_file():
        raise Failed(f"{bed.vts} does not have the sources of nginx-module-vts: clone its repository there")
    if not (NGINX_SOURCES / "configure").is_file():
        raise Failed(f"{NGINX_SOURCES} does not have nginx's sources: apt install nginx-dev")
    directory = bed.scratch("vts-build")
    sources = shutil.copytree(NGINX_SOURCES, directory / "nginx", symlinks=True)
    version = subprocess.run([bed.program("nginx"), "-V"], capture_output=True, text=True, check=True).stderr
    for command in (
        ["sh", "configure", *configure_arguments(version, bed.vts.resolve())],
        ["make", "-f", "objs/Makefile", "modules"],
    ):
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"nginx-module-vts cannot be built: {(done.stderr or done.stdout).strip()[-400:]}")
    return next((sources / "objs").glob("*vhost_traffic_status*.so"))


def measure(bed: Bed) -> Outcome:
    if bed.vts is None:
        raise Failed("name the sources of nginx-module-vts with --vts DIRECTORY")
    module = build(bed)
    starts = QUICK_STARTS if bed.quick else max(STARTS, round(bed.seconds / START_S))
    seconds = bed.seconds / starts
    runs = []
    for start in range(starts):
        name = f"overhead-vts, start {start + 1} of {starts}"
        with (
            bed.aside(),
            bed.server("nginx", files(), name="without", classes=class_rules(), workers=WORKERS) as without,
            bed.server(
                "nginx",
                files(),
                name="with",
                classes=class_rules(),
                workers=WORKERS,
                module=module,
                http=http_configuration(),
            ) as counted,
            bed.load(without.url, *class_flags(bed), "--duration", f"{1.5 * seconds + 60:.0f}s") as other,
            bed.load(counted.url, *class_flags(bed), "--duration", f"{1.5 * seconds + 60:.0f}s") as load,
        ):
            for server in (without, counted):
                server.memory.switch(False)

            def switch(on: bool, load=load, other=other) -> None:
                running, stopped = (load, other) if on else (other, load)
                stopped.pause()
                running.resume()

            pids = without.pids + counted.pids
            subjects = {toggle.MODULE: switch}
            toggle.quartets(pids, subjects, 2, SLICE_S, f"{name}, warm-up", load.check)
            runs.append(toggle.quartets(pids, subjects, seconds, SLICE_S, name, load.check))
    outcome = Outcome()
    loss = toggle.loss_of_runs([run[toggle.MODULE] for run in runs], "bytes_per_s")
    outcome.measured["throughput"] = loss
    outcome.table(
        f"nginx, {WORKERS} workers on one CPU, {len(CLASSES) + 1} classes, {CLIENTS} clients, slices of {SLICE_S:g} s",
        ["module", "starts", "loss of throughput, %"],
        [["nginx-module-vts", str(starts), loss.signed()]],
    )
    outcome.raw = {"starts": [toggle.raw(run) for run in runs]}
    return outcome


CASE = Case(
    "overhead-vts",
    "The effect of nginx-module-vts on a saturated nginx with 16 classes, for comparison",
    (Figure("throughput", "loss of throughput", "%"),),
    measure,
)
