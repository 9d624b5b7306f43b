import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readAnnouncements } from '../../agent/wire/discovery/mdns.ts';
import {
  encodeAnswer,
  encodeQuery,
  instanceName,
  machineName,
  parseAnswer,
  parseQuery,
  plainName,
  QUERY_BYTES,
} from '../../agent/wire/discovery/messages.ts';

const ID = '0123456789abcdef0123456789abcdef';
const FP = 'ab'.repeat(32);
/** Any UTF-16 there is, halves of pairs included. */
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 })
  .map((codes) => String.fromCharCode(...codes));
const NONCE = '0011223344556677';

describe('a broadcast query', () => {
  it('carries its number, and its answer says who and where', () => {
    expect(parseQuery(encodeQuery(NONCE))).toBe(NONCE);
    const answer = { id: ID, fp: FP, nonce: NONCE, port: 7412, name: 'workstation' };
    expect(parseAnswer(encodeAnswer(answer))).toMatchObject(answer);
  });

  it('is never shorter than an answer, whatever the machine is called', () => {
    fc.assert(
      fc.property(anyText, (name) => {
        const bytes = encodeAnswer({ id: ID, fp: FP, nonce: NONCE, port: 65_535, name });
        expect(bytes.length).toBeLessThanOrEqual(QUERY_BYTES);
        expect(parseAnswer(bytes)).not.toBeNull();
      }),
    );
  });

  it('that is short, or of another kind, is not answered', () => {
    expect(parseQuery(encodeQuery(NONCE).subarray(0, 100))).toBeNull();
    expect(parseQuery(Buffer.alloc(QUERY_BYTES, ' '))).toBeNull();
    expect(parseQuery(encodeQuery('not hex'))).toBeNull();
    expect(parseAnswer(Buffer.from('{"switchyard":"answer"}'))).toBeNull();
  });

  it('of any bytes never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1200 }), (bytes) => {
        parseQuery(bytes);
        parseAnswer(bytes);
      }),
    );
  });
});

describe('the name of an instance', () => {
  it('is for people and unique by the id', () => {
    expect(instanceName('workstation', ID)).toBe('workstation (01234567)');
    expect(instanceName('workstation', ID, 2)).toBe('workstation (01234567-2)');
    expect(machineName(instanceName('workstation', ID, 2))).toBe('workstation');
  });

  it('is one label of at most 63 bytes, cut between characters', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 9 }), (host, attempt) => {
        const name = instanceName(host, ID, attempt);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
        expect(name).not.toContain('.');
        expect(name).toMatch(/ \(01234567(-\d)?\)$/);
      }),
    );
    expect(instanceName('ü'.repeat(60), ID)).toBe(`${'ü'.repeat(26)} (01234567)`);
  });

  it('that came from elsewhere is shown without what would disturb the page', () => {
    expect(plainName('a\u0000b\u202Ec\nd')).toBe('abcd');
  });
});

describe('an mDNS message', () => {
  const name = 'Work (01234567)._switchyard._tcp.local';
  const txt = [`v=1`, `id=${ID}`, `fp=${FP}`].map((text) => Buffer.from(text));
  const records = [
    { name: '_switchyard._tcp.local', type: 'PTR', ttl: 28_800, data: name },
    { name, type: 'SRV', ttl: 120, data: { port: 7412, target: 'switchyard-0123.local' } },
    { name, type: 'TXT', ttl: 4500, data: txt },
    { name: 'switchyard-0123.local', type: 'A', ttl: 120, data: '10.0.0.1' },
  ];
  const whole = { instance: 'Work (01234567)', port: 7412, txt: { v: '1', id: ID, fp: FP }, gone: false };

  it('is read whether records come as answers or beside them, and whatever their case', () => {
    expect(readAnnouncements({ answers: records, additionals: [] })).toEqual([whole]);
    const [pointer, ...others] = records;
    const upper = { ...pointer, name: '_Switchyard._TCP.local' };
    expect(readAnnouncements({ answers: [upper], additionals: others })).toEqual([whole]);
  });

  it('says goodbye with a lifetime of 0', () => {
    const goodbye = records.map((record) => ({ ...record, ttl: 0 }));
    expect(readAnnouncements({ answers: goodbye, additionals: [] })).toEqual([{ ...whole, gone: true }]);
  });

  it('of other services, without a port, or of any shape gives nothing and never throws', () => {
    expect(readAnnouncements({ answers: [{ ...records[0], name: '_http._tcp.local' }], additionals: [] })).toEqual([]);
    expect(readAnnouncements({ answers: [records[0]], additionals: [] })).toEqual([]);
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.anything()), (packet, answers) => {
        readAnnouncements(packet);
        readAnnouncements({ answers: [...records.slice(0, 1), ...answers], additionals: answers });
      }),
    );
  });
});
