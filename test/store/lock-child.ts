import { lockDataFolder } from '../../main/store/owner-lock.ts';

// Takes the folder, says so, and holds it until it is killed.
lockDataFolder(process.argv[2] ?? '');
process.stdout.write('locked\n');
setInterval(() => undefined, 60_000);
