import { OpenRouterStandIn } from './openrouter.ts';

/** The stand-in as a process of its own: prints `{"url": ...}`, then answers `POST /__control` and `GET /__ledger`. */
const standIn = new OpenRouterStandIn();
const url = await standIn.start(Number(process.argv[2] ?? 0));
console.log(JSON.stringify({ url }));
