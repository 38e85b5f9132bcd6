#!/bin/sh
# Installs the newest published client where the conformance tests look for
# it, and says what is missing where it cannot. Needs python3 alone.
#   setup.sh [DIRECTORY]    default: $FELIX_VENV, or the user's cache directory
set -eu

dir=${1:-${FELIX_VENV:-}}
if [ -z "$dir" ]; then
	case $(uname -s) in
	Darwin) cache=$HOME/Library/Caches ;;
	*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
	esac
	dir=$cache/felix-conformance/venv
fi

if ! command -v python3 >/dev/null; then
	echo "conformance: python3 is missing; install Python 3.9 or later" >&2
	exit 1
fi
if [ ! -x "$dir/bin/python" ] && ! python3 -m venv "$dir"; then
	echo "conformance: python3 has no venv module (on Debian: python3-venv)" >&2
	exit 1
fi
if ! "$dir/bin/python" -m pip install --disable-pip-version-check --quiet --upgrade felix-client; then
	if ! "$dir/bin/python" -c 'import felix' 2>/dev/null; then
		echo "conformance: pip cannot install felix-client; is a package index in reach?" >&2
		exit 1
	fi
	echo "conformance: no package index in reach; the installed release is used" >&2
fi
touch "$dir/felix-checked"
"$dir/bin/python" -c 'import felix; print("felix-client", felix.__version__)'
