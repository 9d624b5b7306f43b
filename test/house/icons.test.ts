import { readFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, inflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { icns, ico, png } from '../../scripts/icon-files.mjs';
import { root } from './package-rules.ts';

const asset = (name: string) => readFileSync(path.join(root, 'assets', name));

/** Reads a PNG with a decoder of the test's own: 8 bits a channel, RGBA, filters "none" and "up". */
function decode(file: Buffer): {
  readonly width: number;
  readonly height: number;
  pixel(x: number, y: number): number[];
} {
  expect(file.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
  const parts = new Map<string, Buffer>();
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const body = file.subarray(at + 4, at + 8 + length);
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    parts.set(body.subarray(0, 4).toString('latin1'), body.subarray(4));
    at += 12 + length;
  }
  expect([...parts.keys()]).toEqual(['IHDR', 'IDAT', 'IEND']);
  const header = parts.get('IHDR') ?? Buffer.alloc(13);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  expect([...header.subarray(8)]).toEqual([8, 6, 0, 0, 0]);
  const rows = inflateSync(parts.get('IDAT') ?? Buffer.alloc(0));
  const line = width * 4 + 1;
  expect(rows.length).toBe(line * height);
  for (let y = 1; y < height; y++) {
    if (rows[y * line] !== 2) continue;
    for (let x = 1; x < line; x++)
      rows[y * line + x] = ((rows[y * line + x] ?? 0) + (rows[(y - 1) * line + x] ?? 0)) & 0xff;
  }
  return { width, height, pixel: (x, y) => [...rows.subarray(y * line + 1 + x * 4, y * line + 5 + x * 4)] };
}

/** Two by two: red, green, blue at half strength, nothing. */
const FOUR = {
  size: 2,
  rgba: Buffer.from([255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 128, 0, 0, 0, 0]),
};

describe('the formats of icons', () => {
  it('PNG gives back every pixel', () => {
    const { width, height, pixel } = decode(png(FOUR));
    expect([width, height]).toEqual([2, 2]);
    expect([pixel(0, 0), pixel(1, 0), pixel(0, 1), pixel(1, 1)]).toEqual([
      [255, 0, 0, 255],
      [0, 255, 0, 255],
      [0, 0, 255, 128],
      [0, 0, 0, 0],
    ]);
  });

  it('ICO holds blue, green, red, alpha from the bottom row up, and a mask of its own height', () => {
    const file = ico([FOUR]);
    // 6 bytes of header, 16 of entry, then 40 of bitmap header, 4 pixels of 4 bytes, 2 rows of mask padded to 4 bytes.
    expect([...file.subarray(0, 6)]).toEqual([0, 0, 1, 0, 1, 0]);
    expect([...file.subarray(6, 10)]).toEqual([2, 2, 0, 0]);
    expect([file.readUInt32LE(14), file.readUInt32LE(18)]).toEqual([40 + 16 + 8, 22]);
    expect([file.readInt32LE(26), file.readInt32LE(30)]).toEqual([2, 4]);
    expect([...file.subarray(62, 78)]).toEqual([255, 0, 0, 128, 0, 0, 0, 0, 0, 0, 255, 255, 0, 255, 0, 255]);
    expect(file.length).toBe(22 + 64);
  });

  it('ICNS refuses to leave a size out', () => {
    expect(() => icns([FOUR])).toThrow('16 pixels');
  });
});

describe('the icons in assets', () => {
  const PLATE = [0x16, 0x36, 0x5f, 0xff];

  it.each([16, 24, 32, 48, 64, 128, 256, 512, 1024])(
    '%d pixels: the plate of the drawing, transparent at its corners',
    (size) => {
      const { width, height, pixel } = decode(asset(`package/icons/${size}x${size}.png`));
      expect([width, height]).toEqual([size, size]);
      expect(pixel(0, 0)[3]).toBeLessThan(8); // at 16 pixels the curve just touches it
      expect(pixel(Math.floor(size * 0.3), Math.floor(size * 0.3))).toEqual(PLATE);
    },
  );

  it("Windows' file has seven sizes, whose entries lie one after the other to its end", () => {
    const file = asset('package/icon.ico');
    const entries = Array.from({ length: file.readUInt16LE(4) }, (_, i) => 6 + i * 16);
    expect(entries.map((at) => file[at] || 256)).toEqual([16, 24, 32, 48, 64, 128, 256]);
    let end = 6 + entries.length * 16;
    for (const at of entries) {
      expect(file.readUInt32LE(at + 12)).toBe(end);
      end += file.readUInt32LE(at + 8);
    }
    expect(end).toBe(file.length);
    const largest = file.readUInt32LE((entries.at(-1) ?? 0) + 12);
    expect(decode(file.subarray(largest)).width).toBe(256);
  });

  it("Apple's file names each size as Apple does", () => {
    const file = asset('package/icon.icns');
    expect(file.subarray(0, 4).toString()).toBe('icns');
    expect(file.readUInt32BE(4)).toBe(file.length);
    const sizes: Record<string, number> = {};
    for (let at = 8; at < file.length; at += file.readUInt32BE(at + 4)) {
      const content = file.subarray(at + 8, at + file.readUInt32BE(at + 4));
      sizes[file.subarray(at, at + 4).toString()] = decode(content).width;
    }
    expect(sizes).toEqual({
      icp4: 16,
      icp5: 32,
      ic11: 32,
      ic12: 64,
      ic07: 128,
      ic08: 256,
      ic13: 256,
      ic09: 512,
      ic14: 512,
      ic10: 1024,
    });
  });

  it('the marks of the tray: macOS gets black and alpha alone, which it colours itself', () => {
    expect(decode(asset('marks/tray@2x.png')).width).toBe(2 * decode(asset('marks/tray.png')).width);
    const { width, height, pixel } = decode(asset('marks/trayTemplate@2x.png'));
    const all = Array.from({ length: width * height }, (_, i) => pixel(i % width, Math.floor(i / width)));
    expect(all.filter(([r, g, b, a]) => a !== 0 && (r !== 0 || g !== 0 || b !== 0))).toEqual([]);
    expect(all.some(([, , , a]) => a === 255) && all.some(([, , , a]) => a === 0)).toBe(true);
  });
});
