import { OpenaiStandIn } from '../engines/stand-ins/openai.ts';

/** An engine that chats, as a program: one JSON line when it listens on the port that is its argument. */
const engine = await new OpenaiStandIn({ task: 'chat' }).start(Number(process.argv[2] ?? 0));
console.log(JSON.stringify({ url: engine.url }));
