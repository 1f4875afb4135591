#!/bin/sh
# Packs dist/Pomona.app, as `make app` leaves it, into a disk image. Runs on a Mac alone.
#
# POMONA_SIGN_IDENTITY signs the image too; with NOTARY_KEY (a .p8 file's content), NOTARY_KEY_ID and NOTARY_ISSUER Apple
# notarizes it, and the ticket is stapled on. Without them a person has to allow the app in System Settings once.
set -eu
cd "$(dirname "$0")/../.."

version=$(plutil -extract CFBundleShortVersionString raw dist/Pomona.app/Contents/Info.plist)
image=dist/Pomona-$version-arm64.dmg
codesign --verify --deep --strict dist/Pomona.app
rm -rf build/image "$image"
mkdir -p build/image
ditto dist/Pomona.app build/image/Pomona.app
ln -s /Applications build/image/Applications
hdiutil create -quiet -volname Pomona -srcfolder build/image -format UDZO "$image"
if [ -n "${POMONA_SIGN_IDENTITY:-}" ]; then
    codesign --sign "$POMONA_SIGN_IDENTITY" --timestamp "$image"
fi
if [ -n "${NOTARY_KEY:-}" ]; then
    umask 077
    trap 'rm -f build/notary.p8' EXIT
    printf '%s\n' "$NOTARY_KEY" >build/notary.p8
    xcrun notarytool submit "$image" --wait --key build/notary.p8 --key-id "$NOTARY_KEY_ID" --issuer "$NOTARY_ISSUER"
    xcrun stapler staple "$image"
fi
ls -l "$image"
