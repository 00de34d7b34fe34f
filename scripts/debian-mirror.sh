#!/bin/sh
# Prints the mirror from which Debian systems are made: DEBIAN_MIRROR, this system's own, or Debian's.
set -eu
# shellcheck disable=SC2016 # of apt-get
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    grep '/debian/*$' | head -n 1)}
echo "${mirror:-http://deb.debian.org/debian}"
