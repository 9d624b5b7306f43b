// The three picture formats that installers want, written from raw pixels: PNG, Windows' ICO, Apple's ICNS.
import { crc32, deflateSync } from 'node:zlib';

/** @typedef {{ size: number, rgba: Buffer }} Picture square; 4 bytes a pixel, rows from the top, alpha not premultiplied */

function chunk(type, content) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(content.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

/** Each row differs little from the one above ("up" filter), which is what deflate is good at. */
function filtered({ size, rgba }) {
  const row = size * 4;
  const rows = Buffer.alloc((row + 1) * size);
  for (let y = 0; y < size; y++) {
    rows[y * (row + 1)] = 2;
    for (let x = 0; x < row; x++) {
      const above = y === 0 ? 0 : rgba[(y - 1) * row + x];
      rows[y * (row + 1) + 1 + x] = (rgba[y * row + x] - above) & 0xff;
    }
  }
  return rows;
}

/** @param {Picture} picture */
export function png(picture) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.size, 0);
  header.writeUInt32BE(picture.size, 4);
  header.set([8, 6], 8); // 8 bits a channel, RGBA
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(filtered(picture), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A bitmap as icons hold it: BGRA from the bottom, then a mask that is all zero because alpha says it. */
function bitmap({ size, rgba }) {
  const header = Buffer.alloc(40);
  header.writeUInt32LE(40, 0);
  header.writeInt32LE(size, 4);
  header.writeInt32LE(size * 2, 8); // colours and mask
  header.writeUInt16LE(1, 12);
  header.writeUInt16LE(32, 14);
  const pixels = Buffer.alloc(size * size * 4);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const from = (y * size + x) * 4;
      const to = ((size - 1 - y) * size + x) * 4;
      pixels.set([rgba[from + 2], rgba[from + 1], rgba[from], rgba[from + 3]], to);
    }
  }
  const mask = Buffer.alloc(Math.ceil(size / 32) * 4 * size);
  return Buffer.concat([header, pixels, mask]);
}

/**
 * Bitmaps up to 128 pixels, PNG at 256: the installer's compiler reads no small PNG.
 * @param {Picture[]} pictures at most 256 pixels
 */
export function ico(pictures) {
  const images = pictures.map((picture) => (picture.size < 256 ? bitmap(picture) : png(picture)));
  const directory = Buffer.alloc(6 + pictures.length * 16);
  directory.writeUInt16LE(1, 2);
  directory.writeUInt16LE(pictures.length, 4);
  let offset = directory.length;
  for (const [i, { size }] of pictures.entries()) {
    const entry = 6 + i * 16;
    directory.set([size % 256, size % 256], entry); // 256 is written as 0
    directory.writeUInt16LE(1, entry + 4);
    directory.writeUInt16LE(32, entry + 6);
    directory.writeUInt32LE(images[i].length, entry + 8);
    directory.writeUInt32LE(offset, entry + 12);
    offset += images[i].length;
  }
  return Buffer.concat([directory, ...images]);
}

/** Apple's name for each size; the second of two is the same size meant for a screen of double density. */
const APPLE = [
  ['icp4', 16],
  ['icp5', 32],
  ['ic11', 32],
  ['ic12', 64],
  ['ic07', 128],
  ['ic08', 256],
  ['ic13', 256],
  ['ic09', 512],
  ['ic14', 512],
  ['ic10', 1024],
];

/** @param {Picture[]} pictures one of each size of `APPLE` */
export function icns(pictures) {
  const entries = APPLE.map(([type, size]) => {
    const picture = pictures.find((one) => one.size === size);
    if (picture === undefined) throw new Error(`an .icns file needs a picture of ${size} pixels`);
    const content = png(picture);
    const header = Buffer.alloc(8);
    header.write(type, 'latin1');
    header.writeUInt32BE(content.length + 8, 4);
    return Buffer.concat([header, content]);
  });
  const header = Buffer.alloc(8);
  header.write('icns', 'latin1');
  header.writeUInt32BE(8 + entries.reduce((sum, { length }) => sum + length, 0), 4);
  return Buffer.concat([header, ...entries]);
}
