#!/bin/sh
# Makes the input of the job beside it: 12 pictures of three sizes, in the folder in/.
set -eu
cd "$(dirname "$0")"
mkdir -p in
for size in 160x120 320x240 640x480; do
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=$size:rate=1" \
    -frames:v 4 "in/picture $size %d.png"
done
