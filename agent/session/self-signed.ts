import { type KeyObject, sign } from 'node:crypto';

/**
 * X.509 certificates as an agent needs one: an EC P-256 key that vouches for itself (RFC 5280, DER by X.690). Written here
 * because the libraries for it cost 700 kB of code and 10 MB of memory, for 60 lines of theirs that would be used.
 */
export interface SelfSigned {
  readonly commonName: string;
  /** 1 to 20 bytes, the first one 1 to 127: a positive number in its shortest form. */
  readonly serial: Uint8Array;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;
/** Explicit, the first of a sequence. */
const VERSION = 0xa0;

/** 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = Buffer.from('2a8648ce3d040302', 'hex');
/** 2.5.4.3 */
const COMMON_NAME = Buffer.from('550403', 'hex');
const V3 = Buffer.of(2);

export function selfSignedCertificate(of: SelfSigned): string {
  const algorithm = der(SEQUENCE, der(OID, ECDSA_WITH_SHA256));
  const attribute = der(SEQUENCE, der(OID, COMMON_NAME), der(UTF8_STRING, Buffer.from(of.commonName, 'utf8')));
  const name = der(SEQUENCE, der(SET, attribute));
  const signed = der(
    SEQUENCE,
    der(VERSION, der(INTEGER, V3)),
    der(INTEGER, of.serial),
    algorithm,
    name, // by itself ...
    der(SEQUENCE, time(of.notBefore), time(of.notAfter)),
    name, // ... of itself
    of.publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', signed, of.privateKey);
  return pem(der(SEQUENCE, signed, algorithm, der(BIT_STRING, Buffer.of(0), signature)));
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag), length(content.length), content]);
}

/** Up to 127 in one byte, else the number of bytes and then these. */
function length(value: number): Buffer {
  if (value < 0x80) return Buffer.of(value);
  const bytes: number[] = [];
  for (let rest = value; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

/** To the second. Two digits of the year until 2049, four from then on. */
function time(at: Date): Buffer {
  const digits = `${at.toISOString().slice(0, 19).replace(/\D/g, '')}Z`;
  const isShort = at.getUTCFullYear() < 2050;
  return der(isShort ? UTC_TIME : GENERALIZED_TIME, Buffer.from(isShort ? digits.slice(2) : digits, 'latin1'));
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
