#!/usr/bin/env bash
# Puts GROMACS's source and its regression tests into the build folder, checked and unpacked, the source patched.
#   GROMACS_SOURCE    a source tree, a tarball, or a folder that holds the tarballs (default: Debian's source package for
#                     2022.5, GROMACS's public repository for others)
#   REGRESSIONTESTS   likewise for the regression tests, which are those of 2022.5 for all versions
# A tarball of 2022.5 must have the checksum in gromacs-patch/2022.5/source.sha256, of others the files that are patched must
# be those that the patches were made for; a tree must be of that version.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

checksums=$ROOT/gromacs-patch/$DEFAULT_VERSION/source.sha256
[ -f "$checksums" ] || die "$checksums is missing"
mkdir -p "$SOURCE_DIR"

# expected_sum main|regressiontests
expected_sum() {
    if [ "$1" = main ]; then grep -v regressiontests "$checksums"; else grep regressiontests "$checksums"; fi |
        grep -v '^#' | head -n 1 | cut -d ' ' -f 1
}

# verified FILE main|regressiontests: true if the checksum is right
verified() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$(expected_sum "$2")" ]; }

# tarball_in FOLDER main|regressiontests: the first tarball of that kind there
tarball_in() {
    local file
    for file in "$1"/*.tar.gz "$1"/*.tgz "$1"/*.tar.xz; do
        [ -f "$file" ] || continue
        case $2:$(basename "$file") in
            regressiontests:*regressiontests*) echo "$file" && return ;;
            main:*regressiontests* | main:*debian*) ;;
            main:gromacs*"$GROMACS_VERSION"*) echo "$file" && return ;;
        esac
    done
}

# Sources lists of Debian's own archive on this machine, as deb-src, into a folder of our own.
write_private_sources() {
    local folder=$1 file
    mkdir -p "$folder"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        # deb822: keep stanzas with a Debian suite and component main.
        grep -v '^#' "$file" | awk -v RS= -v ORS='\n\n' '
            /(^|\n)Suites:[^\n]*(bookworm|oldstable|stable)/ && /(^|\n)Components:[^\n]* main/ && /(^|\n)URIs:[^\n]*debian/ {
                gsub(/(^|\n)Types:[^\n]*/, "\nTypes: deb-src"); sub(/^\n/, ""); print }' \
            >"$folder/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        # one line: deb [options] URI suite components
        sed -nE 's/^[[:space:]]*deb[[:space:]]+((\[[^]]*\][[:space:]]+)?[^[:space:]]*debian[^[:space:]]*[[:space:]]+(bookworm|oldstable|stable)[^[:space:]]*[[:space:]].*\bmain\b)/deb-src \1/p' \
            "$file" >"$folder/$(basename "$file")"
    done
    find "$folder" -type f -empty -delete
    [ -n "$(ls -A "$folder")" ]
}

# Debian's source package, without touching /etc or /var
fetch_from_debian() {
    local apt=$SOURCE_DIR/apt version=$DEFAULT_VERSION-2
    rm -rf "$apt"
    write_private_sources "$apt/sources.d" ||
        die "no Debian archive in this machine's apt sources; set GROMACS_SOURCE and REGRESSIONTESTS to the tarballs of $DEFAULT_VERSION"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    local options=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources.d"
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Acquire::Languages=none -o Acquire::Retries=3
        -o APT::Sandbox::User="$(id -un)")
    run_logged gromacs-source-index apt-get "${options[@]}" update
    (cd "$SOURCE_DIR" && run_logged gromacs-source apt-get "${options[@]}" source --download-only "gromacs=$version")
    rm -rf "$apt"
}

# copy_verified FILE NAME main|regressiontests
copy_verified() {
    verified "$1" "$3" || die "$1 has not the checksum in $checksums: not the unchanged tarball of GROMACS $DEFAULT_VERSION"
    if [ ! "$1" -ef "$SOURCE_DIR/$2" ]; then cp "$1" "$SOURCE_DIR/$2"; fi
}

# is_tree FOLDER main|regressiontests
is_tree() {
    if [ "$2" = main ]; then [ -f "$1/cmake/gmxVersionInfo.cmake" ]; else [ -d "$1/complex" ] && [ -f "$1/gmxtest.pl" ]; fi
}

main_tarball=gromacs_$DEFAULT_VERSION.orig.tar.gz
tests_tarball=gromacs_$DEFAULT_VERSION.orig-regressiontests.tar.gz

# obtain PLACE NAME main|regressiontests: a user's tarball, checked and copied (a tree stays where it is)
obtain() {
    local place=$1 found
    if [ -z "$place" ]; then return; fi
    [ -e "$place" ] || die "$place does not exist"
    if [ -d "$place" ]; then
        if is_tree "$place" "$3"; then return; fi
        found=$(tarball_in "$place" "$3")
        [ -n "$found" ] || die "$place holds neither a tree nor a tarball of GROMACS $DEFAULT_VERSION's ${3/main/source}"
        place=$found
    fi
    copy_verified "$place" "$2" "$3"
}

# The source of another version than the default one: a tarball of the user's, or a clone of the release from the public
# repository, whose commit says that it is the right one. Sets $main_source to the tarball or the clone.
obtain_other_version() {
    main_source=${GROMACS_SOURCE:-}
    if is_tree "${main_source:-/nowhere}" main; then return; fi
    if [ -d "$main_source" ]; then
        main_source=$(tarball_in "$main_source" main)
        [ -n "$main_source" ] || die "$GROMACS_SOURCE holds neither a tree nor a tarball of GROMACS $GROMACS_VERSION"
    elif [ -n "$main_source" ]; then
        [ -f "$main_source" ] || die "$main_source does not exist"
    else
        local url tag commit
        read -r commit tag url <"$PATCH_DIR/source.commit"
        main_source=$SOURCE_DIR/gromacs-$GROMACS_VERSION
        if [ "$(git -C "$main_source" rev-parse HEAD 2>/dev/null)" != "$commit" ]; then
            rm -rf "$main_source"
            run_logged gromacs-source git -c advice.detachedHead=false clone --depth 1 --branch "$tag" "$url" "$main_source"
            [ "$(git -C "$main_source" rev-parse HEAD)" = "$commit" ] ||
                die "the tag $tag of $url is not the commit in $PATCH_DIR/source.commit"
        fi
    fi
}

# is_patched_for TREE: whether the files that are patched are those that the patches were made for
is_patched_for() {
    local file blob
    (cd "$PATCH_DIR" && xargs cat <series) | awk '/^diff --git / { file = substr($4, 3) }
        /^index / && !seen[file]++ { split($2, blob, "[.][.]"); print blob[1], file }' |
        while read -r blob file; do
            case $(git hash-object --no-filters "$1/$file" 2>/dev/null) in
                "$blob"*) ;;
                *) echo "$file" && return 1 ;;
            esac
        done
}

if [ "$GROMACS_VERSION" = "$DEFAULT_VERSION" ]; then
    obtain "${GROMACS_SOURCE:-}" "$main_tarball" main
else
    obtain_other_version
fi
if [ -z "${REGRESSIONTESTS:-}" ] && [ -d "${GROMACS_SOURCE:-}" ] && [ -n "$(tarball_in "$GROMACS_SOURCE" regressiontests)" ]; then
    REGRESSIONTESTS=$GROMACS_SOURCE # one folder with both tarballs
fi
obtain "${REGRESSIONTESTS:-}" "$tests_tarball" regressiontests

need=0
if [ "$GROMACS_VERSION" = "$DEFAULT_VERSION" ] && ! is_tree "${GROMACS_SOURCE:-/nowhere}" main; then
    verified "$SOURCE_DIR/$main_tarball" main || need=1
fi
if ! is_tree "${REGRESSIONTESTS:-/nowhere}" regressiontests; then verified "$SOURCE_DIR/$tests_tarball" regressiontests || need=1; fi
if ((need)); then
    fetch_from_debian
    verified "$SOURCE_DIR/$main_tarball" main || die "the source package's $main_tarball has not the checksum in $checksums"
    verified "$SOURCE_DIR/$tests_tarball" regressiontests || die "the source package's $tests_tarball has not the checksum in $checksums"
fi

# unpack TARBALL FOLDER: without the tarball's top folder
unpack() {
    rm -rf "$2"
    mkdir -p "$2"
    tar -xf "$1" -C "$2" --strip-components=1
}

# The source, patched. A new patch series goes onto a fresh tree, of which only what differs is copied, so that the
# next build compiles little.
make_patched_tree() {
    local fresh=$GROMACS_TREE.new
    if is_tree "${GROMACS_SOURCE:-/nowhere}" main; then
        rm -rf "$fresh"
        cp -r "$GROMACS_SOURCE" "$fresh"
        [ "$(sed -n 's/^project(Gromacs VERSION \([0-9.]*\).*/\1/p' "$fresh/CMakeLists.txt")" = "$GROMACS_VERSION" ] ||
            die "$GROMACS_SOURCE is not GROMACS $GROMACS_VERSION"
    elif [ "$GROMACS_VERSION" != "$DEFAULT_VERSION" ]; then
        if [ -d "$main_source" ]; then
            rm -rf "$fresh"
            cp -r "$main_source" "$fresh"
            rm -rf "$fresh/.git"
        else
            unpack "$main_source" "$fresh"
        fi
        is_patched_for "$fresh" || die "$main_source is not the unchanged source of GROMACS $GROMACS_VERSION"
    else
        unpack "$SOURCE_DIR/$main_tarball" "$fresh"
    fi
    "$ROOT/gromacs-patch/apply.sh" "$fresh"
    if [ -d "$GROMACS_TREE" ]; then
        python3 "$ROOT/scripts/sync-tree.py" "$fresh" "$GROMACS_TREE"
        rm -rf "$fresh"
    else
        mv "$fresh" "$GROMACS_TREE"
    fi
}

origin=${GROMACS_SOURCE:-public}
hash=$(content_hash "$PATCH_DIR" "$ROOT/gromacs-patch/common" "$ROOT/gromacs-patch/apply.sh" "$ROOT/src/fmm/options.def")-$origin
if ! stamp_matches "patched$suffix" "$hash" || [ ! -d "$GROMACS_TREE" ]; then
    stamp_remove "patched$suffix"
    run_logged gromacs-patch make_patched_tree
    stamp_write "patched$suffix" "$hash"
fi

make_regression_tree() {
    if is_tree "${REGRESSIONTESTS:-/nowhere}" regressiontests; then
        rm -rf "$REGRESSION_TREE"
        cp -r "$REGRESSIONTESTS" "$REGRESSION_TREE"
    else
        unpack "$SOURCE_DIR/$tests_tarball" "$REGRESSION_TREE"
    fi
}
origin=${REGRESSIONTESTS:-debian}
if ! stamp_matches regressiontests "$origin" || [ ! -d "$REGRESSION_TREE" ]; then
    stamp_remove regressiontests
    run_logged regressiontests make_regression_tree
    stamp_write regressiontests "$origin"
fi
