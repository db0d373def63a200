#!/bin/sh
# Makes the font of the UI from the package inter-ui: ui/build/font.sh. It needs npm and Python 3.
# Upright, weights 400 to 600, optical size 14; Latin, its extension A, punctuation, arrows and the
# symbols of the UI; of the features, those for marks, kerning and figures of equal width.
set -eu
version=4.1.1
cd "$(dirname "$0")/../vendor/inter-ui"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "inter-ui@$version" >/dev/null
tar xzf "inter-ui-$version.tgz"
python3 -m venv python
python/bin/pip install --quiet fonttools==4.68.0 brotli==1.2.1
python/bin/fonttools varLib.instancer --quiet --no-recalc-timestamp -o instance.ttf package/variable/InterVariable.woff2 opsz=14 wght=400:600
python/bin/python - <<'END'
# Figures of equal width, but no other characters: a wide hyphen would look like one between spaces.
from fontTools.ttLib import TTFont
font = TTFont('instance.ttf', recalcTimestamp=False)
features = font['GSUB'].table.FeatureList.FeatureRecord
digits = [font.getBestCmap()[c] for c in range(ord('0'), ord('9') + 1)]
for i in {i for f in features if f.FeatureTag == 'tnum' for i in f.Feature.LookupListIndex}:
    for table in font['GSUB'].table.LookupList.Lookup[i].SubTable:
        table = getattr(table, 'ExtSubTable', table)
        table.mapping = {g: to for g, to in table.mapping.items() if g in digits}
font.save('instance.ttf')
END
python/bin/pyftsubset instance.ttf --output-file="$here/inter.woff2" --flavor=woff2 --no-hinting --no-recalc-timestamp \
	--layout-features=ccmp,kern,locl,mark,mkmk,tnum \
	--unicodes=U+20-7E,U+A0-17F,U+3BC,U+2009,U+2010-2015,U+2018-201E,U+2020-2022,U+2026,U+202F,U+2039-203A,U+20AC,U+2190-2193,U+2197,U+21B5,U+2212,U+221E,U+2248,U+2260,U+2264-2265,U+2318,U+25B2,U+25BC,U+25CF,U+2713
cp package/package.json "$here/package.json"
cp package/LICENSE* "$here/LICENSE"
ls -l "$here"
