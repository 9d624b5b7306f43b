import { connect, createServer, type Socket } from 'node:net';

export interface Relay {
  readonly port: number;
  readonly url: string;
  /** Open client connections, oldest first. */
  readonly sockets: ReadonlySet<Socket>;
  stop(): Promise<void>;
}

/** Bytes to and fro on a port of its own, as a container's port mapping does; a side that ends ends the other. */
export async function startRelay(target: number, host = '127.0.0.1'): Promise<Relay> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    sockets.add(near);
    near.pipe(far).pipe(near);
    for (const [side, peer] of [
      [near, far],
      [far, near],
    ] as const) {
      side.on('error', () => undefined);
      side.once('close', () => {
        peer.destroy();
        sockets.delete(near);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    sockets,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
