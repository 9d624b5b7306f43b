import { createHash, createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';

/** A fresh key with its certificate, and what a client pins. */
export interface FreshKey {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** base64 of SHA-256 over the DER of the SPKI, as `curl --pinnedpubkey sha256//…` takes it. */
  readonly pin: string;
}

type X509Library = Pick<typeof import('@peculiar/x509'), 'X509CertificateGenerator'>;

/** A P-256 key that never rests on a disk, self-signed: whoever connects pins the key and looks at nothing else. */
export async function makeFreshKey(): Promise<FreshKey> {
  // Loaded late: few starts ever add a machine. It needs the reflection polyfill first.
  await import('reflect-metadata');
  const library: X509Library & { readonly default?: X509Library } = await import('@peculiar/x509');
  // Inside a bundle it is CommonJS, whose names lie under `default` when it is loaded late.
  const { X509CertificateGenerator } = library.default ?? library;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: `01${randomBytes(8).toString('hex')}`,
      name: 'CN=switchyard',
      // Clocks of new machines are often wrong.
      notBefore: new Date('2020-01-01T00:00:00Z'),
      notAfter: new Date('2099-12-31T23:59:59Z'),
      signingAlgorithm: algorithm,
      // Node's web crypto and the DOM's have the same shape and different type names.
      keys: keys as unknown as CryptoKeyPair,
    },
    webcrypto as unknown as Crypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  pkcs8.fill(0);
  const certificatePem = certificate.toString('pem');
  const spki = new X509Certificate(certificatePem).publicKey.export({ type: 'spki', format: 'der' });
  return {
    certificatePem,
    keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    pin: createHash('sha256').update(spki).digest('base64'),
  };
}
