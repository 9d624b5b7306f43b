import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import {
  app,
  BrowserWindow,
  dialog,
  ipcMain,
  Menu,
  Notification,
  nativeImage,
  nativeTheme,
  powerMonitor,
  protocol,
  safeStorage,
  screen,
  session,
  shell,
  Tray,
  utilityProcess,
} from 'electron';
import { ControlPlane } from './control-plane.ts';
import { utilityAgentProcess } from './desktop/agent-process.ts';
import { ConsoleWindow } from './desktop/console-window.ts';
import { Desktop } from './desktop/desktop.ts';
import { Ending } from './desktop/ending.ts';
import { ConsoleIpc } from './desktop/ipc.ts';
import { desktopKeychain } from './desktop/keychain.ts';
import { setStartAtLogin } from './desktop/login.ts';
import { answerPage } from './desktop/page-protocol.ts';
import { APP_ID, APP_SCHEME, forbiddenSwitch } from './desktop/policy.ts';
import type { DesktopPlane } from './desktop/ports.ts';
import { closeSession, PARTITION } from './desktop/session-walls.ts';
import { TrayService, trayCanBeSeen, trayImage } from './desktop/tray.ts';
import { loadElectronUpdater, readUpdateFacts } from './desktop/update-facts.ts';
import { Updates } from './desktop/updates.ts';
import { languageOf, say } from './desktop/words.ts';
import { LanDiscovery, noDiscovery } from './discovery/lan-discovery.ts';
import { SwitchyardError } from './domain/errors.ts';
import { saidOf, sayPlainly } from './domain/said.ts';
import { agentEnvironment } from './platform/agent-process.ts';
import { createSystemClock } from './platform/clock.ts';
import { consoleFolder, readConsoleFiles } from './platform/console-files.ts';
import { thisComputer } from './platform/enrol-files.ts';
import { bundledFile, defaultDataFolder, PRODUCT_VERSION } from './platform/places.ts';

/** What may stand on the command line of the desktop; Chromium's own switches are let through unread. */
function commandLine() {
  const { values } = parseArgs({
    args: process.argv.slice(1),
    strict: false,
    options: {
      agent: { type: 'boolean' },
      hidden: { type: 'boolean' },
      port: { type: 'string' },
      'data-dir': { type: 'string' },
      'no-embedded-agent': { type: 'boolean' },
      'no-discovery': { type: 'boolean' },
      'new-admin-token': { type: 'boolean' },
      engine: { type: 'string', multiple: true },
    },
  });
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);
  const port = Number(text(values.port) ?? Number.NaN);
  return {
    agent: values.agent === true,
    hidden: values.hidden === true,
    port: Number.isInteger(port) && port >= 0 && port <= 65_535 ? port : null,
    dataFolder: text(values['data-dir']) ?? defaultDataFolder(),
    embeddedAgent: values['no-embedded-agent'] !== true,
    discovery: values['no-discovery'] !== true,
    newAdminToken: values['new-admin-token'] === true,
    engines: (values.engine ?? []).filter((url) => typeof url === 'string'),
  };
}

const chosen = commandLine();
// Windows shows notifications and groups windows only under the id that the installer registered.
if (process.platform === 'win32') app.setAppUserModelId(APP_ID);
process.umask(0o077);
// A package carries the agent outside its archive: it is the same folder that other machines are given.
const agentEntry = app.isPackaged
  ? pathToFileURL(path.join(process.resourcesPath, 'agent/index.js'))
  : bundledFile(import.meta.url, '../agent/index.js', '../agent/index.ts');

if (app.isPackaged && forbiddenSwitch(process.argv.slice(1)) !== null) {
  console.error('Switchyard does not start with switches that open its window to others.');
  app.exit(1);
} else if (chosen.agent) {
  // `switchyard --agent`: the agent of a machine without a desktop's window, from the same package.
  process.argv.splice(1, process.argv.length, fileURLToPath(agentEntry), ...process.argv.slice(1).filter(forAgent));
  void app.whenReady().then(() => import(agentEntry.href));
} else if (!app.requestSingleInstanceLock()) {
  app.exit(0);
} else {
  protocol.registerSchemesAsPrivileged([
    { scheme: APP_SCHEME, privileges: { standard: true, secure: true, supportFetchAPI: true } },
  ]);
  // Not awaited at the top level: Electron emits `ready` only when this module has ended.
  void app.whenReady().then(startDesktop);
}

function forAgent(argument: string): boolean {
  return (
    argument !== '--agent' &&
    !argument.startsWith('--user-data-dir') &&
    argument !== '.' &&
    argument !== app.getAppPath()
  );
}

async function startDesktop(): Promise<void> {
  const clock = createSystemClock();
  const after = (delayMs: number, callback: () => void) => clock.after(delayMs, callback);
  const consoleFiles = await readConsoleFiles(consoleFolder(import.meta.url));
  const walled = session.fromPartition(PARTITION);
  closeSession(walled);
  walled.protocol.handle(APP_SCHEME, (request) => answerPage(consoleFiles, request.method, request.url));
  Menu.setApplicationMenu(null);

  let serving: (plane: DesktopPlane) => void = () => undefined;
  let failed: (reason: unknown) => void = () => undefined;
  const ready = new Promise<DesktopPlane>((resolve, reject) => {
    serving = resolve;
    failed = reject;
  });
  ready.catch(() => undefined); // every call reports it as well

  const ipc = new ConsoleIpc({ ipcMain, plane: ready, after });
  ipc.start();
  const windowMark = bundledFile(import.meta.url, '../../assets/marks/window.png', '../assets/marks/window.png');
  const window: ConsoleWindow = new ConsoleWindow({
    icon: fileURLToPath(windowMark),
    makeWindow: (options) => new BrowserWindow(options),
    screen,
    ipc,
    after,
    nowMs: () => clock.nowMs(),
    preload: fileURLToPath(bundledFile(import.meta.url, '../preload/index.cjs', '../out/preload/index.cjs')),
    packaged: app.isPackaged,
    dark: () => nativeTheme.shouldUseDarkColors,
    stateFile: path.join(app.getPath('userData'), 'window.json'),
    openOutside: (url) => void shell.openExternal(url),
    mayClose: () => desktop.mayClose(),
  });
  const language = languageOf('system', app.getLocale());
  const mark = process.platform === 'darwin' ? 'trayTemplate.png' : 'tray.png';
  const icon = bundledFile(import.meta.url, `../../assets/marks/${mark}`, `../assets/marks/${mark}`);
  const desktop: Desktop = new Desktop({
    window,
    makeTray: (act) =>
      new TrayService(
        {
          makeTray: () => new Tray(trayImage(nativeImage.createFromPath(fileURLToPath(icon)), process.platform)),
          buildMenu: (template) => Menu.buildFromTemplate(template),
          act,
        },
        language,
      ),
    trayCanBeSeen: trayCanBeSeen(process.platform, process.env.XDG_CURRENT_DESKTOP),
    systemLanguage: app.getLocale(),
    notify: (title, body, onClick) => {
      if (!Notification.isSupported()) return;
      const notification = new Notification({ title, body });
      notification.on('click', onClick);
      notification.show();
    },
    ask: async (options) => (await dialog.showMessageBox(options)).response,
    setStartAtLogin: (enabled) =>
      setStartAtLogin(enabled, {
        platform: process.platform,
        executable: process.env.APPIMAGE ?? app.getPath('exe'),
        configFolder: app.getPath('appData'),
        setLoginItem: (settings) => app.setLoginItemSettings(settings),
      }),
    quit: () => app.quit(),
  });

  // The window first; the control plane starts behind it and its questions wait.
  window.start(chosen.hidden);
  desktop.start();
  app.on('second-instance', () => window.open(null, null));
  app.on('activate', () => window.open(null, null));
  app.on('window-all-closed', () => undefined); // serving goes on without a window

  const keychain = await desktopKeychain(safeStorage, process.platform);
  const updates = new Updates({
    clock,
    random: Math.random,
    facts: await readUpdateFacts({
      version: PRODUCT_VERSION,
      packaged: app.isPackaged,
      platform: process.platform,
      resources: process.resourcesPath,
      executable: process.execPath,
    }),
    loadUpdater: loadElectronUpdater,
    automatic: false, // until the setting has been read
    drain: () => ending.drain(),
  });
  const plane: ControlPlane = new ControlPlane({
    clock,
    random: Math.random,
    randomBytes,
    version: PRODUCT_VERSION,
    shell: 'desktop',
    dataFolder: chosen.dataFolder,
    storeWorker: bundledFile(import.meta.url, './store-worker.js', './store/worker.ts'),
    vaultKeys: {
      text: process.env.SWITCHYARD_KEYRING,
      file: process.env.SWITCHYARD_KEYRING_FILE,
      keychain: keychain ?? undefined,
    },
    newAdminToken: chosen.newAdminToken,
    port: chosen.port,
    embeddedAgent: chosen.embeddedAgent
      ? utilityAgentProcess({
          fork: (modulePath, args, options) => utilityProcess.fork(modulePath, args, options),
          entry: fileURLToPath(agentEntry),
          args: [
            '--embedded',
            '--data-dir',
            path.join(chosen.dataFolder, 'agent'),
            ...chosen.engines.flatMap((url) => ['--engine', url]),
          ],
          env: agentEnvironment(process.env),
          onLog: (line) => process.stderr.write(`agent: ${line}\n`),
        })
      : null,
    consoleFiles,
    enrolment: thisComputer(bundledFile(import.meta.url, '../enrol/', '../out/enrol/')),
    discovery: chosen.discovery ? new LanDiscovery({ clock, randomBytes, interfaces: networkInterfaces }) : noDiscovery,
    updates,
  });
  const ending: Ending = new Ending({
    app,
    onSignal: (signal, listener) => process.on(signal, listener),
    nowMs: () => clock.nowMs(),
    begin: () => {
      desktop.beginQuit();
      window.hide();
      updates.stop();
    },
    stopServing: () => plane.stop(),
    finish: () => {
      ipc.stop();
      desktop.stop();
      window.destroy();
    },
  });
  ending.start();
  try {
    const { secrets } = await plane.start();
    // Only when asked for: what a desktop writes goes to logs that nobody thinks of.
    if (chosen.newAdminToken) console.log(`Admin token, shown this once: ${secrets.adminToken}`);
  } catch (error) {
    failed(error);
    const detail =
      error instanceof SwitchyardError ? sayPlainly(language, saidOf(error)) : say(language, 'startFailed');
    await dialog.showMessageBox({ type: 'error', message: say(language, 'cannotStart'), detail });
    app.quit();
    return;
  }
  serving(plane);
  powerMonitor.on('suspend', () => plane.onPower('suspend'));
  powerMonitor.on('resume', () => plane.onPower('resume'));
  desktop.attach(plane);
  updates.start();
}
