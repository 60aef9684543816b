#!/bin/sh
# Makes the input of the job beside it: 24 numbered frames of a test picture, in the folder in/.
set -eu
cd "$(dirname "$0")"
mkdir -p in
ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=320x180:rate=24 \
  -frames:v 24 -start_number 0 in/%08d.png
