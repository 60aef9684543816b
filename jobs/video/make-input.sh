#!/bin/sh
# Makes the input of the job beside it: a film of 5 seconds with a key frame each second, in/film.mp4.
set -eu
cd "$(dirname "$0")"
mkdir -p in
ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=320x180:rate=24 -t 5 \
  -c:v libx264 -preset veryfast -g 24 -pix_fmt yuv420p in/film.mp4
