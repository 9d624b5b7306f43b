import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { selfSignedCertificate } from '../../agent/session/self-signed.ts';

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const make = (more: Partial<Parameters<typeof selfSignedCertificate>[0]> = {}) =>
  selfSignedCertificate({
    commonName: 'agent',
    serial: Buffer.from('0102ff', 'hex'),
    notBefore: new Date('2020-01-01T00:00:00Z'),
    notAfter: new Date('2099-12-31T23:59:59Z'),
    ...keys,
    ...more,
  });

describe('a certificate that vouches for itself', () => {
  it('says what it was made of, to OpenSSL', () => {
    const certificate = new X509Certificate(make());
    expect(certificate.subject).toBe('CN=agent');
    expect(certificate.issuer).toBe('CN=agent');
    expect(certificate.serialNumber).toBe('0102FF');
    expect(certificate.validFromDate).toEqual(new Date('2020-01-01T00:00:00Z'));
    expect(certificate.validToDate).toEqual(new Date('2099-12-31T23:59:59Z'));
    expect(certificate.ca).toBe(false);
  });

  it('holds its key and is signed with it, and with no other', () => {
    const certificate = new X509Certificate(make());
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(certificate.checkPrivateKey(keys.privateKey)).toBe(true);
    expect(certificate.verify(keys.publicKey)).toBe(true);
    expect(certificate.verify(other.publicKey)).toBe(false);
    expect(new X509Certificate(make({ privateKey: other.privateKey })).verify(keys.publicKey)).toBe(false);
  });

  // A length takes one byte up to 127, two up to 255, three from 256 on.
  it.each([1, 100, 127, 128, 255, 256, 300])('bears a name of %i letters', (length) => {
    const commonName = 'é'.repeat(length);
    const { subject } = new X509Certificate(make({ commonName }));
    expect(subject).toBe(`CN=${commonName}`);
  });

  it('writes the last second of 2049 and the first of 2050, where the form of dates changes', () => {
    for (const at of ['2049-12-31T23:59:59Z', '2050-01-01T00:00:00Z']) {
      const certificate = new X509Certificate(make({ notAfter: new Date(at) }));
      expect(certificate.validToDate).toEqual(new Date(at));
    }
  });
});
