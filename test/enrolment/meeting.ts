import { createHash, X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';

/** A machine that is being added, as far as bytes go: it speaks only to the key it was told of. */
export interface Place {
  readonly host: string;
  readonly port: number;
  readonly pin: string;
}

/** Takes a command apart as a shell would. */
export function placeOf(posix: string): Place & { readonly token: string; readonly url: string } {
  const [, url = '', host = '', port = '', token = ''] =
    /'(https:\/\/([\d.]+):(\d+)\/e\/([A-Za-z0-9_-]{22}))' 'sha256\/\//.exec(posix) ?? [];
  const pin = /--pinnedpubkey 'sha256\/\/([A-Za-z0-9+/]{43}=)'/.exec(posix)?.[1] ?? '';
  return { url, host, port: Number(port), token, pin };
}

export function pinOf(socket: TLSSocket): string {
  const { raw } = socket.getPeerCertificate();
  const spki = new X509Certificate(raw).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}

/** A connection by the pin. */
export function dial({ host, port, pin }: Place): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false }, () => {
      if (pinOf(socket) === pin) resolve(socket);
      else reject(new Error('another key'));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed')));
  });
}

/** Everything that comes back until the other side closes, as text of single bytes. */
export async function exchange(place: Place, bytes: string): Promise<string> {
  const socket = await dial(place);
  return await new Promise((resolve) => {
    let heard = '';
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(heard));
    socket.write(bytes);
  });
}

export interface Told {
  readonly status: number;
  readonly body: string;
  readonly headers: string;
}

export async function ask(place: Place, method: string, path: string, body?: unknown, headers = ''): Promise<Told> {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const length = body === undefined ? '' : `content-length: ${Buffer.byteLength(text)}\r\n`;
  const heard = await exchange(place, `${method} ${path} HTTP/1.1\r\nhost: x\r\n${headers}${length}\r\n${text}`);
  const end = heard.indexOf('\r\n\r\n');
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(heard)?.[1]),
    headers: heard.slice(0, end),
    body: heard.slice(end + 4),
  };
}
