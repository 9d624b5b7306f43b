// A stand-in of Ollama as a program: what joining asks of it, on the address in OLLAMA_HOST.
import { createServer } from 'node:http';

const [host, port] = (process.env.OLLAMA_HOST ?? '127.0.0.1:11434').split(':');
const version = process.env.STANDIN_VERSION ?? '0.32.7';
const models = new Set();
const GIB = 2 ** 30;

const tag = (name) => ({ name: name.includes(':') ? name : `${name}:latest`, digest: 'd'.repeat(64), size: GIB });
const send = (response, status, body) => response.writeHead(status).end(JSON.stringify(body));

function pull(response, model) {
  if (model.startsWith('no-such')) return send(response, 200, { error: 'pull model manifest: file does not exist' });
  const line = (value) => response.write(`${JSON.stringify(value)}\n`);
  line({ status: 'pulling manifest' });
  line({ status: 'pulling a', digest: 'sha256:a', total: 3 * GIB, completed: GIB });
  line({ status: 'pulling a', digest: 'sha256:a', total: 3 * GIB, completed: 3 * GIB });
  models.add(model);
  line({ status: 'success' });
  response.end();
}

createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const { model = '' } = text === '' ? {} : JSON.parse(text);
    if (request.url === '/') return response.end('Ollama is running');
    if (request.url === '/api/version') return send(response, 200, { version });
    if (request.url === '/api/tags') return send(response, 200, { models: [...models].map(tag) });
    if (request.url === '/api/ps') return send(response, 200, { models: [] });
    if (request.url === '/api/show') {
      return models.has(model)
        ? send(response, 200, { capabilities: ['completion'], model_info: {} })
        : send(response, 404, { error: 'model not found' });
    }
    if (request.url === '/api/pull') return pull(response, model);
    return send(response, 404, { error: 'not found' });
  });
}).listen(Number(port), host, () => console.log('listens'));
