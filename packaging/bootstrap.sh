#!/bin/sh
# Sets up a development checkout with nothing but Python 3.11 or newer:
#
#   bootstrap.sh setup          makes .venv with the locked dependencies and this project (editable)
#   bootstrap.sh lock [ARGS]    renews the locks; ARGS go to `uv pip compile`, for example --upgrade
#   bootstrap.sh clients        makes .tools/clients, programs with which long tests ask the API
#   bootstrap.sh app            builds the self-contained app of this machine's kind into dist
#   bootstrap.sh app-mac        builds the light app for Macs into dist/light, on any machine
#
# Everything lands in this folder: .venv, and .tools/uv where the machine has no uv. Two exceptions: uv keeps downloads
# in the user's cache, and on Debian and its relatives, as root, apt-get installs the system libraries that Qt loads.
# POSIX sh, because a Mac's bash is from 2007.
set -eu
cd "$(dirname "$0")/.."

UV_PIN=packaging/uv.txt           # the uv to fetch, with hashes
STAMP=.venv/.pomona-setup         # holds what the last complete set-up was made from
# What Qt's xcb and offscreen plugins, QtWidgets and QtSvg load and no wheel brings, as library=Debian package
# (ldd on them tells; what these packages depend on is not repeated).
QT_LIBRARIES="
libEGL.so.1=libegl1 libGL.so.1=libgl1 libX11.so.6=libx11-6 libX11-xcb.so.1=libx11-xcb1
libdbus-1.so.3=libdbus-1-3 libfontconfig.so.1=libfontconfig1 libfreetype.so.6=libfreetype6
libglib-2.0.so.0=libglib2.0-0 libgthread-2.0.so.0=libglib2.0-0 libxkbcommon.so.0=libxkbcommon0
libxkbcommon-x11.so.0=libxkbcommon-x11-0 libxcb-cursor.so.0=libxcb-cursor0 libxcb-glx.so.0=libxcb-glx0
libxcb-icccm.so.4=libxcb-icccm4 libxcb-image.so.0=libxcb-image0 libxcb-keysyms.so.1=libxcb-keysyms1
libxcb-randr.so.0=libxcb-randr0 libxcb-render-util.so.0=libxcb-render-util0 libxcb-render.so.0=libxcb-render0
libxcb-shape.so.0=libxcb-shape0 libxcb-shm.so.0=libxcb-shm0 libxcb-sync.so.1=libxcb-sync1
libxcb-util.so.1=libxcb-util1 libxcb-xfixes.so.0=libxcb-xfixes0 libxcb-xkb.so.1=libxcb-xkb1"

say() { printf '%s\n' "$*" >&2; }
fail() { say "Pomona: $*"; exit 1; }

# Prints the first Python that fits. Runs each: a version manager's shim may be on PATH without a Python behind it.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 to 3.14 for this processor."
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if fits "$name"; then
            command -v "$name"
            return
        fi
    done
    fail "needs Python 3.11 to 3.14 (on a Mac: an arm64 one) and found none on PATH;" \
        "install one, or name it: make setup PYTHON=/path/to/python3."
}

fits() {
    "$1" - 2>/dev/null <<'PYTHON'
import platform, sys
wanted = (3, 11) <= sys.version_info[:2] < (3, 15)
native = sys.platform != "darwin" or platform.machine() == "arm64"
sys.exit(not (wanted and native))
PYTHON
}

debian_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# apt_install PURPOSE PACKAGE... : installs as root, else says which command would.
apt_install() {
    purpose=$1
    shift
    debian_root || fail "$purpose missing; run this once as root, then again what you ran: apt-get install $*"
    say "Installing $purpose: $*"
    mkdir -p .tools
    log=.tools/apt.log
    apt-get update -qq >"$log" 2>&1 || say "apt-get update failed; trying with the package lists that are there."
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1 \
        || { tail -n 20 "$log" >&2; fail "apt-get could not install $purpose ($*); its words are above."; }
}

# Sets UV to a uv that is new enough: the machine's own, or one from PyPI in .tools/uv.
find_uv() {
    if uv_is_new uv; then
        UV=uv
        return
    fi
    UV=.tools/uv/bin/uv
    if [ -x "$UV" ] && cmp -s "$UV_PIN" .tools/uv/pin; then
        return
    fi
    say "Fetching uv into .tools"
    rm -rf .tools/uv .tools/venv
    mkdir -p .tools
    if ! find_pip && command -v apt-get >/dev/null 2>&1; then
        apt_install "Python's venv module" python3-venv
    fi
    find_pip || fail "$python has neither venv nor pip; install one of them (or uv), then run this again."
    "$pip_python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location --require-hashes \
        --only-binary :all: --target .tools/uv -r "$UV_PIN" || fail "could not fetch uv; pip's words are above."
    cp "$UV_PIN" .tools/uv/pin
    rm -rf .tools/venv
}

# Sets pip_python to a Python that has pip: a throw-away environment's, else the one found. Debian's may have neither.
find_pip() {
    pip_python=.tools/venv/bin/python
    "$python" -m venv .tools/venv >/dev/null 2>&1 && [ -x .tools/venv/bin/pip ] && return
    pip_python=$python
    "$python" -m pip --version >/dev/null 2>&1
}

# 0.9 is the first release series with everything used here.
uv_is_new() {
    version=$("$1" --version 2>/dev/null) || return 1
    version=${version#uv }
    major=${version%%.*}
    rest=${version#*.}
    minor=${rest%%.*}
    [ "$major" -gt 0 ] || [ "$minor" -ge 9 ]
}

qt_libraries() {
    [ -e /etc/debian_version ] || return 0
    missing=
    for pair in $QT_LIBRARIES; do
        case $known in
            *"${pair%%=*}"*) ;;
            *) missing="$missing ${pair#*=}" ;;
        esac
    done
    # shellcheck disable=SC2086 # a list of names without spaces
    [ -z "$missing" ] || apt_install "system libraries that Qt needs" $missing
}

setup() {
    if [ "$(uname -s)" = Linux ]; then
        known=$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null)
        qt_libraries
    fi
    # The stamp holds the inputs themselves: nothing to do while they are the same and the environment's Python runs.
    if ingredients | cmp -s - "$STAMP" && .venv/bin/python -c "" 2>/dev/null; then
        return
    fi
    python=$(find_python)
    find_uv
    export UV_PYTHON_DOWNLOADS=never
    say "Installing into .venv"
    rm -f "$STAMP"
    if [ -n "${PYTHON:-}" ] || ! fits .venv/bin/python; then
        "$UV" venv --quiet --clear --python "$python" .venv
    fi
    # Compiled now, so that not every first start does it, nor every start where Python is told to write no bytecode.
    "$UV" pip sync --quiet --compile-bytecode --python .venv --require-hashes requirements-dev.txt
    "$UV" pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
    .venv/bin/python -m compileall -q -j 0 pomona.py discovery resources runtime gui tests
    ingredients >"$STAMP"
}

ingredients() { cat requirements-dev.txt pyproject.toml packaging/bootstrap.sh && echo "${PYTHON:-}"; }

# Sets APP to the Python of an environment with what the app is made of and with, and with this checkout.
app_environment() {
    python=$(find_python)
    find_uv
    export UV_PYTHON_DOWNLOADS=never
    APP=.tools/app/bin/python
    fits "$APP" || "$UV" venv --quiet --clear --python "$python" .tools/app
    set -- --quiet --python .tools/app
    if [ "$(uname -s)" = Darwin ]; then
        # One build for every macOS from the oldest on: newer wheels of MLX do not load on older systems.
        export MACOSX_DEPLOYMENT_TARGET=14.0
        set -- "$@" --python-platform aarch64-apple-darwin
    fi
    say "Installing into .tools/app"
    "$UV" pip sync "$@" --require-hashes packaging/requirements.txt
    "$UV" pip install "$@" --no-deps --no-build-isolation --reinstall-package pomona .
}

app() {
    app_environment
    mkdir -p build
    "$APP" packaging/bundle_icon.py build/Pomona.icns
    "$APP" packaging/bundle_plists.py build/entitlements.plist
    say "Building with PyInstaller; this takes some minutes, and its words go to build/pyinstaller.log"
    rm -rf dist/pomona dist/Pomona.app
    "$APP" -m PyInstaller --noconfirm --distpath dist --workpath build packaging/pomona.spec \
        >build/pyinstaller.log 2>&1 || { tail -n 20 build/pyinstaller.log >&2; fail "PyInstaller failed."; }
    du -sh dist/pomona dist/Pomona.app 2>/dev/null || true
}

app_mac() {
    app_environment
    "$APP" packaging/light_app.py --uv "$UV"
}

# Programs that tests of the API run as a person would, in an environment of their own: they bring much, and llm is
# kept out of ours (see tool.uv in pyproject.toml).
clients() {
    python=$(find_python)
    cmp -s packaging/clients.txt .tools/clients/pin 2>/dev/null && return
    find_uv
    export UV_PYTHON_DOWNLOADS=never
    say "Installing into .tools/clients"
    "$UV" venv --quiet --clear --no-project --python "$python" .tools/clients
    "$UV" pip sync --quiet --compile-bytecode --python .tools/clients --require-hashes packaging/clients.txt
    cp packaging/clients.txt .tools/clients/pin
}

lock() {
    python=$(find_python)
    find_uv
    export UV_PYTHON_DOWNLOADS=never
    set -- --quiet --universal --generate-hashes --python "$python" --python-version 3.11 --no-emit-index-url \
        --custom-compile-command "make lock" "$@"
    "$UV" pip compile "$@" pyproject.toml --group demo --output-file requirements.txt
    "$UV" pip compile "$@" pyproject.toml --group demo --group dev --constraint requirements.txt \
        --output-file requirements-dev.txt
    "$UV" pip compile "$@" pyproject.toml --group demo --group packaging --constraint requirements-dev.txt \
        --output-file packaging/requirements.txt
    echo uv | "$UV" pip compile "$@" - --output-file "$UV_PIN"
    printf 'litellm\nllm\n' | "$UV" pip compile --no-config "$@" - --output-file packaging/clients.txt
}

case "${1:-}" in
    setup | lock | app | clients) "$@" ;;
    app-mac) app_mac ;;
    *) fail "usage: $0 setup | lock [ARGS] | clients | app | app-mac" ;;
esac
