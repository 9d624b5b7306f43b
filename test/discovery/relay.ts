import { connect, createServer } from 'node:net';

// Runs inside another network: connections to the Unix socket in argv[3] go to loopback port argv[2] there.
const [, , port, socket] = process.argv;
createServer((client) => {
  const server = connect(Number(port), '127.0.0.1');
  for (const end of [client, server]) end.on('error', () => end.destroy());
  client.pipe(server).pipe(client);
}).listen(socket, () => console.log('{}'));
