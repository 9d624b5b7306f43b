import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppleSource, parseIoreg } from '../../../agent/gpu/apple.ts';
import { parsePlist } from '../../../agent/gpu/plist.ts';
import { SimClock } from '../../gate/sim-clock.ts';

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8');
const GIB = 1024 ** 3;

describe('ioreg', () => {
  it('on Apple silicon gives load, memory in use and the memory of the machine; an idle GPU is at 0 %', () => {
    expect(parseIoreg(fixture('ioreg-m1-pro.plist'), 32 * GIB)).toEqual([
      {
        vendor: 'apple',
        number: null,
        pci: null,
        uuid: null,
        name: 'Apple M1 Pro',
        utilisationPercent: 0,
        memoryUsedBytes: 7_688_503_296,
        memoryTotalBytes: 32 * GIB,
        temperatureC: null,
        powerW: null,
      },
    ]);
  });

  it('on a Mac with two GPUs shows both, the card with its own memory, and no bridge', () => {
    expect(parseIoreg(fixture('ioreg-intel-mac.plist'), 16 * GIB)).toMatchObject([
      { name: 'Intel UHD Graphics 630', utilisationPercent: 7, memoryUsedBytes: GIB / 4, memoryTotalBytes: 16 * GIB },
      {
        name: 'AMDRadeonX6000_AMDNavi14GraphicsAccelerator',
        utilisationPercent: 64,
        memoryUsedBytes: GIB,
        memoryTotalBytes: 4 * GIB,
        temperatureC: 71,
        powerW: 38,
      },
    ]);
  });

  it('that says nothing, or nonsense, is no GPU', () => {
    for (const text of ['', 'no gpu here', '<plist><dict/></plist>', '<plist><array><dict><key>a</key></array>']) {
      expect(parseIoreg(text, GIB)).toEqual([]);
    }
  });
});

describe('a property list', () => {
  it('is read with every kind of value', () => {
    const xml = `<?xml version="1.0"?><plist version="1.0"><dict>
      <key>a &amp; b</key><string>1 &lt; 2</string><key>n</key><integer>-7</integer><key>r</key><real>0.5</real>
      <key>t</key><true/><key>f</key><false/><key>none</key><string/><key>l</key><array><string>x</string><array/></array>
      <key>d</key><data>AQI=</data><key>__proto__</key><dict/></dict></plist>`;
    const dict = parsePlist(xml);
    expect(JSON.stringify(dict)).toBe(
      '{"a & b":"1 < 2","n":-7,"r":0.5,"t":true,"f":false,"none":"","l":["x",[]],"d":{"type":"Buffer","data":[1,2]},"__proto__":{}}',
    );
  });

  it('cut or changed anywhere never throws', () => {
    const xml = fixture('ioreg-m1-pro.plist');
    fc.assert(
      fc.property(fc.nat(xml.length), fc.nat(40), fc.string(), (at, length, put) => {
        parsePlist(xml.slice(0, at) + put + xml.slice(at + length));
      }),
      { numRuns: 500 },
    );
  });
});

describe('the source', () => {
  it('keeps the GPU but not its values after two failures', async () => {
    const clock = new SimClock();
    let works = true;
    const gpus = new AppleSource({
      clock,
      environment: {},
      memoryBytes: GIB,
      run: async () => {
        if (works) return fixture('ioreg-m1-pro.plist');
        throw new Error('exit 1');
      },
    });
    gpus.start();
    await clock.settle();
    works = false;
    await clock.advance(4_000);
    expect(gpus.latest()).toMatchObject([{ utilisationPercent: 0 }]);
    await clock.advance(4_000);
    expect(gpus.latest()).toMatchObject([{ name: 'Apple M1 Pro', utilisationPercent: null, memoryUsedBytes: null }]);
    gpus.stop();
  });
});
