import { crc32, deflateSync, inflateSync } from 'node:zlib';

/** 8 bits a channel, RGB or RGBA, as browsers make them. */
interface Pixels {
  readonly width: number;
  readonly height: number;
  /** 0xRRGGBB, rows from the top. */
  readonly colours: Uint32Array;
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const PALETTE = 256;

/** The same picture in at most 256 colours: a third of its size, and no difference to the eye for text and lines. */
export function smaller(png: Buffer): Buffer {
  const pixels = decode(png);
  const palette = paletteOf(pixels.colours);
  const indices = nearest(pixels.colours, palette);
  const { width, height } = pixels;
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) rows.set(indices.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8); // 8 bits, palette
  const plte = Buffer.from([...palette].flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]));
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', plte),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function decode(png: Buffer): Pixels {
  const header = png.subarray(16);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = header[9] === 6 ? 4 : 3;
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const colours = new Uint32Array(width * height);
  let above: Uint8Array = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const from = y * (stride + 1);
    const row = unfiltered(raw[from] ?? 0, raw.subarray(from + 1, from + 1 + stride), above, channels);
    for (let x = 0; x < width; x++) {
      const at = x * channels;
      colours[y * width + x] = ((row[at] ?? 0) << 16) | ((row[at + 1] ?? 0) << 8) | (row[at + 2] ?? 0);
    }
    above = row;
  }
  return { width, height, colours };
}

/** Takes back what PNG's five filters did to a row. */
function unfiltered(filter: number, row: Uint8Array, above: Uint8Array, step: number): Uint8Array {
  const out = new Uint8Array(row.length);
  for (let at = 0; at < row.length; at++) {
    const left = out[at - step] ?? 0;
    const up = above[at] ?? 0;
    const corner = above[at - step] ?? 0;
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
    out[at] = (row[at] ?? 0) + guess;
  }
  return out;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** The colours that occur most; those that differ little from one already taken are left to it. */
function paletteOf(colours: Uint32Array): Uint32Array {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const byCount = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour);
  if (byCount.length <= PALETTE) return Uint32Array.from(byCount);
  const taken: number[] = [];
  for (let apart = 12; taken.length < PALETTE && apart >= 0; apart -= 4) {
    for (const colour of byCount) {
      if (taken.length === PALETTE) break;
      if (taken.every((other) => distance(colour, other) > apart * apart)) taken.push(colour);
    }
  }
  return Uint32Array.from(taken);
}

function nearest(colours: Uint32Array, palette: Uint32Array): Uint8Array {
  const known = new Map<number, number>();
  return Uint8Array.from(colours, (colour) => {
    const before = known.get(colour);
    if (before !== undefined) return before;
    let best = 0;
    palette.forEach((other, at) => {
      if (distance(colour, other) < distance(colour, palette[best] ?? 0)) best = at;
    });
    known.set(colour, best);
    return best;
  });
}

function distance(a: number, b: number): number {
  const [red, green, blue] = [(a >> 16) - (b >> 16), ((a >> 8) & 0xff) - ((b >> 8) & 0xff), (a & 0xff) - (b & 0xff)];
  return red * red + green * green + blue * blue;
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(content.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
