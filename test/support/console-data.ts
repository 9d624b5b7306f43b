import { type Said, said, together, told } from '../../main/domain/said.ts';
import { CHECK_IDS } from '../../preload/contract/names.ts';
import type {
  AppView,
  BudgetView,
  CheckView,
  CloudView,
  EnrolmentView,
  EventView,
  HealthView,
  HistoryView,
  KeyView,
  NodeView,
  Output,
  ProviderView,
  RequestView,
  RoleView,
  SettingsView,
  VerdictView,
} from '../../preload/contract.ts';

/** An invented fleet for tests of the console: two good machines, a mis-encoded one, a lost one, the app's own. */
export const NOW = Date.UTC(2026, 10, 29, 21, 58, 0);
const ago = (minutes: number) => NOW - minutes * 60_000;
const titled = ({ sentence, ...titleSays }: Said) => ({ title: sentence, titleSays });
const DIFFERS = together(
  said('gate_incompatible', { minCosine: 0.97612, probe: 'en-caps' }),
  said('gate_serve_founding'),
);

export function node(over: Partial<NodeView> & Pick<NodeView, 'id' | 'name'>): NodeView {
  return {
    address: '192.168.1.20:7412',
    embedded: false,
    state: 'ready',
    stateSinceMs: ago(60),
    reason: null,
    lastHeartbeatAgeMs: 1200,
    lastHeartbeatAtMs: NOW - 1200,
    pairedAtMs: ago(60 * 24 * 12),
    agentVersion: '0.1.0',
    upgradeTo: null,
    platform: 'linux',
    arch: 'x64',
    cpu: 'AMD Ryzen 9 7950X',
    cores: 32,
    cpuPercent: 12,
    memoryUsedBytes: 20e9,
    memoryTotalBytes: 128e9,
    uptimeS: 86_400,
    gpus: [],
    roles: [],
    slots: 8,
    running: 5,
    queued: 1,
    foreign: 0,
    tokensPerSecond: 58.2,
    ttftP50Ms: 84,
    controllers: 1,
    ...over,
  };
}

const gpu = (index: number, utilisationPercent: number | null, usedGb: number, totalGb: number) => ({
  index,
  name: 'NVIDIA RTX 4090',
  utilisationPercent,
  memoryUsedBytes: usedGb * 1e9,
  memoryTotalBytes: totalGb * 1e9,
  temperatureC: 61,
  powerW: 280,
});
const serving = (role: NodeView['roles'][number]['role']) => ({ role, serving: true, reason: null });

export const NODES: readonly NodeView[] = [
  node({
    id: 'n1',
    name: 'workstation',
    gpus: [gpu(0, 71, 16.2, 24), gpu(1, 64, 15, 24)],
    roles: [serving('code-embedding'), serving('code-assistant')],
  }),
  node({
    id: 'n2',
    name: 'workstation-2',
    address: '192.168.1.21:7412',
    gpus: [gpu(0, 0, 9.8, 24)],
    roles: [serving('embedding'), serving('reranker')],
    slots: 4,
    running: 0,
    queued: 0,
    tokensPerSecond: 41,
    ttftP50Ms: 112,
  }),
  node({
    id: 'n3',
    name: 'mac-studio',
    address: '192.168.1.34:7412',
    state: 'degraded',
    platform: 'darwin',
    arch: 'arm64',
    cpu: 'Apple M2 Ultra',
    gpus: [{ ...gpu(0, 38, 74, 192), name: 'Apple M2 Ultra', temperatureC: null, powerW: null }],
    roles: [
      serving('code-assistant'),
      {
        role: 'code-embedding',
        serving: false,
        reason: said('verdict_failed'),
      },
    ],
    slots: 4,
    running: 1,
    queued: 0,
    tokensPerSecond: 33.5,
    ttftP50Ms: 148,
    upgradeTo: '0.2.0',
  }),
  node({
    id: 'n4',
    name: 'lab-box',
    address: '10.0.7.4:7412',
    state: 'unreachable',
    stateSinceMs: NOW - 42_000,
    lastHeartbeatAtMs: NOW - 57_000,
    gpus: [],
    roles: [serving('code-assistant')],
    slots: null,
    running: null,
    queued: null,
    tokensPerSecond: null,
    ttftP50Ms: null,
    memoryTotalBytes: null,
    memoryUsedBytes: null,
    cpuPercent: null,
  }),
  node({
    id: 'n0',
    name: 'this machine',
    address: null,
    embedded: true,
    roles: [serving('embedding')],
    slots: 1,
    running: 0,
    queued: 0,
    tokensPerSecond: null,
    ttftP50Ms: 25,
    memoryUsedBytes: 9.1e9,
    memoryTotalBytes: 32e9,
  }),
];

export function role(over: Partial<RoleView> & Pick<RoleView, 'id' | 'task'>): RoleView {
  return {
    enabled: true,
    policy: 'aggregate',
    now: said('aggregate'),
    dimension: null,
    threshold: null,
    maxLocalWaitMs: 3000,
    minTokensPerSecond: null,
    localModels: 'auto',
    cloud: { model: null, upstreams: [], quantizations: [] },
    cloudOffered: null,
    cloudNearest: [],
    spendCaps: { dayUsd: null, monthUsd: null },
    spentDayUsd: 0,
    spentMonthUsd: 0,
    normalise: true,
    cutDimensions: [],
    space: null,
    serving: [],
    localReady: 0,
    cloudReady: 0,
    queued: 0,
    running: 0,
    oldestWaitMs: 0,
    waitEstimateMs: 0,
    ...over,
  };
}

export const ROLES: readonly RoleView[] = [
  role({
    id: 'embedding',
    task: 'embed',
    now: together(said('unfounded'), said('found_choose', { count: 2 })),
    dimension: 512,
    threshold: 0.99,
    space: { id: 'embedding-0a1b2c3d', width: 512, trial: true },
    serving: [{ model: 'use-lite-512', kind: 'local', providers: 1 }],
    localReady: 1,
  }),
  role({
    id: 'code-embedding',
    task: 'embed',
    dimension: 2560,
    threshold: 0.99,
    space: { id: 'code-embedding-7f3a91c2', width: 2560, trial: false },
    serving: [{ model: 'Qwen3-Embedding-4B', kind: 'local', providers: 2 }],
    cloud: { model: 'qwen/qwen3-embedding-4b', upstreams: ['nebius'], quantizations: ['fp8'] },
    cloudOffered: true,
    localReady: 2,
    cloudReady: 1,
    queued: 4,
    running: 6,
    oldestWaitMs: 400,
    waitEstimateMs: 640,
    spentDayUsd: 0.42,
  }),
  role({
    id: 'reranker',
    task: 'rerank',
    cloud: { model: 'qwen/qwen3-reranker-8b', upstreams: [], quantizations: [] },
    cloudOffered: false,
    cloudNearest: ['cohere/rerank-v3.5'],
    serving: [{ model: 'bge-reranker-v2-m3', kind: 'local', providers: 1 }],
    localReady: 1,
  }),
  role({
    id: 'code-assistant',
    task: 'chat',
    policy: 'backup',
    now: said('backup', { waitMs: 3000 }),
    cloud: { model: 'poolside/laguna-s-2.1', upstreams: [], quantizations: [] },
    cloudOffered: true,
    serving: [{ model: 'qwen3-coder:30b', kind: 'local', providers: 2 }],
    localReady: 2,
    cloudReady: 1,
    queued: 1,
    running: 5,
    waitEstimateMs: 1800,
    spendCaps: { dayUsd: 20, monthUsd: 200 },
    spentDayUsd: 2.7,
    spentMonthUsd: 41.2,
  }),
  role({
    id: 'rlm',
    task: 'chat',
    policy: 'local',
    now: said('local'),
    cloud: { model: 'deepseek/deepseek-v4-flash', upstreams: [], quantizations: [] },
    serving: [{ model: 'qwen3:8b', kind: 'local', providers: 1 }],
    localReady: 1,
    waitEstimateMs: null,
  }),
];

const figures: Readonly<Record<string, number>> = {
  width: 2560,
  'min-cosine': 0.99943,
  centred: 0.9991,
  nearest: 1,
  batch: 0.9998,
  repeat: 1,
  collapse: 0.9412,
  norm: 1,
  limit: 8192,
  drift: 1,
};
export function checks(over: Partial<Record<string, Partial<CheckView>>> = {}): CheckView[] {
  return CHECK_IDS.map((check) => ({
    check,
    state: 'pass',
    figure: figures[check] ?? null,
    threshold: null,
    note: null,
    ...over[check],
  }));
}

export function verdict(over: Partial<VerdictView> & Pick<VerdictView, 'id' | 'title'>): VerdictView {
  return {
    providerId: over.id,
    role: 'code-embedding',
    kind: 'local',
    nodeName: over.title,
    engineKind: 'llama.cpp',
    model: 'Qwen3-Embedding-4B',
    upstream: null,
    spaceId: 'code-embedding-7f3a91c2',
    regime: 'local',
    founder: false,
    verdict: 'pass',
    reason: null,
    checks: checks(),
    minCosine: 0.99943,
    meanCosine: 0.9997,
    centredMin: 0.9991,
    worstProbe: {
      probe: 'en-caps',
      text: 'URGENT: SERVER ROOM TEMPERATURE ABOVE 45 DEGREES',
      cosine: 0.99943,
      anchorHead: [0.0213, -0.0441, 0.0087, 0.0319, -0.0102],
      providerHead: [0.0187, -0.0502, 0.0114, 0.0296, -0.0065],
    },
    anchorNorm: 1,
    providerNorm: 1,
    fingerprint: {
      engine: 'llama.cpp',
      version: 'b6910',
      modelDigest: 'sha256:7f3a91c2d0e1',
      upstream: null,
      pin: null,
      processMark: '4121/88123',
    },
    checkedAtMs: ago(180),
    nextCheckAtMs: NOW + 3 * 3_600_000,
    running: false,
    rowsInDoubt: null,
    ...over,
  };
}

const notRun = Object.fromEntries(CHECK_IDS.map((id) => [id, { state: 'not-run' as const, figure: null }]));
export const VERDICTS: readonly VerdictView[] = [
  verdict({ id: 'v1', title: 'workstation', engineKind: 'vLLM 0.32', founder: true, minCosine: 1 }),
  verdict({ id: 'v2', title: 'workstation-2' }),
  verdict({
    id: 'v3',
    title: 'mac-studio',
    engineKind: 'Ollama 0.33',
    verdict: 'vector-incompatible',
    reason: DIFFERS,
    minCosine: 0.97612,
    checks: checks({
      'min-cosine': { state: 'fail', figure: 0.97612, threshold: 0.99 },
      centred: { state: 'fail', figure: 0.951, threshold: 0.98 },
    }),
    checkedAtMs: ago(21),
  }),
  verdict({
    id: 'v4',
    title: 'openrouter / nebius',
    kind: 'cloud',
    engineKind: 'openrouter',
    upstream: 'nebius',
    minCosine: 0.99681,
    checks: checks({ 'min-cosine': { figure: 0.99681 }, batch: { state: 'skipped', figure: null } }),
  }),
  verdict({
    id: 'v5',
    title: 'openrouter / deepinfra',
    kind: 'cloud',
    engineKind: 'openrouter',
    verdict: 'no-upstream-pin',
    reason: said('gate_no_pin'),
    checks: checks(notRun),
    minCosine: null,
    worstProbe: null,
    checkedAtMs: null,
    fingerprint: null,
  }),
  verdict({
    id: 'v6',
    title: 'this machine',
    role: 'embedding',
    engineKind: 'builtin',
    model: 'use-lite-512',
    spaceId: 'embedding-0a1b2c3d',
    founder: true,
    checks: checks({ width: { figure: 512 }, limit: { figure: 128 } }),
  }),
];

export const HEALTH: readonly HealthView[] = [
  {
    id: 'h1',
    code: 'gate_vector-incompatible',
    severity: 'warn',
    ...titled(said('title_gate', { model: 'Qwen3-Embedding-4B', name: 'mac-studio', role: 'embedding' })),
    ...told(said('gate_incompatible', { minCosine: 0.97612, probe: 'en-caps' })),
    sinceMs: ago(21),
    needsPerson: true,
    page: 'gate',
    target: 'v3',
    action: 'see-gate',
  },
  {
    id: 'h2',
    code: 'cloud_key_missing',
    severity: 'warn',
    ...titled(said('title_cloud_key_missing', { name: 'workstation-2' })),
    ...told(said('cloud_key_missing')),
    sinceMs: ago(4),
    needsPerson: true,
    page: 'keys',
    target: null,
    action: 'enter-key',
  },
  {
    id: 'h3',
    code: 'cloud_off',
    severity: 'info',
    ...titled(said('title_cloud_off')),
    ...told(said('source_credit')),
    sinceMs: ago(12),
    needsPerson: true,
    page: 'budget',
    target: null,
    action: 'see-budget',
  },
];

export const CLOUD: CloudView = {
  state: 'on',
  reason: said('cloud_on', { agents: 2 }),
  paused: false,
  holders: [
    {
      nodeId: 'n1',
      nodeName: 'workstation',
      state: 'accepted',
      reason: null,
      atMs: ago(2),
      push: 3,
      remembered: false,
      baseUrl: 'https://openrouter.ai/api/v1',
    },
    {
      nodeId: 'n3',
      nodeName: 'mac-studio',
      state: 'accepted',
      reason: null,
      atMs: ago(2),
      push: 3,
      remembered: false,
      baseUrl: 'https://openrouter.ai/api/v1',
    },
    {
      nodeId: 'n2',
      nodeName: 'workstation-2',
      state: 'key-missing',
      reason: said('cloud_key_missing'),
      atMs: ago(4),
      push: null,
      remembered: false,
      baseUrl: 'https://openrouter.ai/api/v1',
    },
  ],
  lastPush: { number: 3, atMs: ago(2) },
  catalogueAtMs: ago(9),
  canRemember: true,
  rememberNote: null,
};

/** What the core says of a role that would let go of `local`. */
export const LEAVING: Output<'roles.preview'> = {
  effect: 'plain',
  reasons: [],
  founders: [],
  leaves: {
    openRouter: { hosts: ['openrouter.ai'], model: 'deepseek/deepseek-v4-flash', upstreams: [] },
    elsewhere: [],
  },
};

export const BUDGET: BudgetView = {
  ceiling: 16,
  effective: 11,
  usable: 11,
  inFlight: 6,
  waiting: 3,
  state: 'ramping',
  sentence: together(
    said('permits_of_credit', { usable: 11, permits: 16, creditUsd: 412 }),
    said('budget_climbing', { nextAtMs: NOW + 9000 }),
  ),
  source: 'credit',
  override: null,
  overrideMax: 256,
  creditUsd: 412,
  rate: { perMinute: 1, trusted: false, reason: said('rate_not_trusted') },
  latencyMs: 1840,
  assumedLatencyMs: null,
  coolingUntilMs: null,
  nextStepAtMs: NOW + 9000,
  plateau: 12,
  window: null,
  cuts: [
    {
      atMs: ago(11),
      from: 16,
      to: 8,
      cause: said('source_admission'),
    },
    {
      atMs: ago(4),
      from: 12,
      to: 6,
      cause: said('source_admission'),
    },
  ],
  cooldowns: [
    { fromMs: ago(11), toMs: ago(10) },
    { fromMs: ago(4), toMs: ago(3) },
  ],
  steps: [9, 8, 7, 6].map((minutes, at) => ({ atMs: ago(minutes), from: 8 + at, to: 9 + at })),
  suggestion: null,
  freeTierClosedUntilMs: null,
  shares: [
    { project: 'default', name: 'default', held: 4, waiting: 3, share: 6 },
    { project: 'nightly', name: 'nightly index', held: 2, waiting: 0, share: 5 },
  ],
  spendByRole: [
    { id: 'code-embedding', name: 'code-embedding', dayUsd: 0.42, dayCapUsd: null, monthUsd: 3.9, monthCapUsd: null },
    { id: 'code-assistant', name: 'code-assistant', dayUsd: 2.7, dayCapUsd: 20, monthUsd: 41.2, monthCapUsd: 200 },
  ],
  spendByProject: [
    { id: 'default', name: 'default', dayUsd: 2.9, dayCapUsd: null, monthUsd: 40.1, monthCapUsd: null },
    { id: 'nightly', name: 'nightly index', dayUsd: 0.22, dayCapUsd: 5, monthUsd: 5, monthCapUsd: 50 },
  ],
  discoveredAtMs: ago(6),
};

export const APP: AppView = {
  version: '0.1.0',
  shell: 'desktop',
  platform: 'linux x64',
  startedAtMs: ago(60 * 30),
  endpoint: 'http://127.0.0.1:7411',
  endpointNote: null,
  dataFolder: '/home/ada/.local/share/switchyard',
  dataBytes: 48_200_000,
  encryption: { source: 'os-keychain', version: 1, note: null },
  store: 'ready',
  update: null,
  updates: { state: 'unavailable', reason: 'development' },
};

export const SETTINGS: SettingsView = {
  endpoint: {
    bind: '127.0.0.1',
    port: 7411,
    names: [],
    allowedOrigins: [],
    openLoopback: false,
    trustProxy: false,
    tls: false,
  },
  discovery: { enabled: true },
  timeouts: { firstByteMs: 600_000, betweenTokensMs: 600_000 },
  notifications: { enabled: true },
  desktop: { startAtLogin: false, closeToTray: true },
  console: { theme: 'system', language: 'en', singleKeys: true, firstRunDone: true },
  updates: { check: true },
};

/** A course of an hour with a busy stretch, a gap of a nap, two cuts and their cooldowns. */
export function history(range: '5m' | '1h' | '24h' = '1h', endMs = NOW): HistoryView {
  const lengthMs = range === '5m' ? 300_000 : range === '1h' ? 3_600_000 : 86_400_000;
  const count = 180;
  const stepMs = lengthMs / count;
  const atMs = Array.from({ length: count }, (_, i) => Math.round(endMs - lengthMs + (i + 1) * stepMs));
  const wave = (i: number, seed: number) => Math.sin(i * 0.7 + seed) + Math.sin(i * 0.23 + seed * 2);
  const gap = (i: number) => i >= 112 && i < 124;
  const series = (id: string, value: (i: number) => number | null) => ({
    id,
    values: atMs.map((_, i) => (gap(i) ? null : value(i))),
  });
  const busy = (i: number) => (i > 76 && i < 112 ? Math.sin(((i - 76) / 36) * Math.PI) : 0);
  const effective = (i: number) =>
    i < 82 ? 16 : i < 140 ? Math.min(12, 8 + Math.floor((i - 82) / 14)) : Math.min(11, 6 + Math.floor((i - 140) / 9));
  return {
    range,
    stepMs,
    atMs,
    queue: [
      series('queue.embedding', (i) => Math.max(0, Math.round(1 + wave(i, 5)))),
      series('queue.code-embedding', (i) => Math.max(0, Math.round(3 + 13 * busy(i) + wave(i, 1)))),
      series('queue.reranker', (i) => (i % 18 < 6 ? 2 : 0)),
      series('queue.code-assistant', (i) => Math.max(0, Math.round(1.5 + wave(i, 3) * 0.7))),
      series('queue.rlm', () => 0),
    ],
    latency: [
      series('latency.p50', (i) => 82 + 40 * busy(i) + 5 * wave(i, 1)),
      series('latency.p95', (i) => 150 + 90 * busy(i) + 9 * wave(i, 2)),
      series('latency.p99', (i) => 236 + 120 * busy(i) + 16 * wave(i, 4)),
    ],
    latencyCount: 1284,
    tooMany: [
      series('429.nebius', (i) => (i >= 80 && i < 86 ? (i % 3) * 3 + 1 : i === 139 ? 2 : 0)),
      series('429.deepinfra', (i) => (i >= 81 && i < 84 ? 2 : 0)),
    ],
    permits: [
      series('permits.inFlight', (i) => Math.max(0, Math.round(effective(i) - 1.5 + wave(i, 2) * 0.6))),
      series('permits.effective', effective),
      series('permits.ceiling', () => 16),
    ],
    marks: [
      { atMs: atMs[76] ?? 0, kind: 'node', ...told(said('node_fell_silent', { name: 'mac-studio' })) },
      { atMs: atMs[82] ?? 0, kind: 'cut', ...told(said('budget_cut', { from: 16, to: 8 })) },
      { atMs: atMs[140] ?? 0, kind: 'cut', ...told(said('budget_cut', { from: 12, to: 6 })) },
    ],
    cooldowns: [
      { fromMs: atMs[82] ?? 0, toMs: atMs[85] ?? 0 },
      { fromMs: atMs[140] ?? 0, toMs: atMs[143] ?? 0 },
    ],
    gaps: [{ fromMs: atMs[111] ?? 0, toMs: atMs[124] ?? 0 }],
  };
}

export const OVERVIEW: Output<'overview.get'> = {
  figures: {
    requestsPerSecond: 18.4,
    localPerSecond: 14.1,
    cloudPerSecond: 4.3,
    oldestWaitMs: 400,
    oldestWaitRole: 'code-embedding',
    oldestWaitClass: 'batch',
    spentTodayUsd: 3.12,
    capTodayUsd: 20,
  },
  lastHour: { localShare: 0.77, overflowed: 212, refused: 0, stoppedByGate: 1904 },
  history: history(),
};

export const KEYS: readonly KeyView[] = [
  {
    id: 'k1',
    name: 'editor on my laptop',
    project: 'default',
    projectName: 'default',
    scopes: ['inference'],
    allowWiden: false,
    anyProject: false,
    maxClass: 'interactive',
    requestsPerMinute: null,
    tokensPerMinute: null,
    usdPerDay: null,
    createdAtMs: ago(60 * 24 * 12),
    lastUsedAtMs: ago(0.2),
    revokedAtMs: null,
  },
  {
    id: 'k2',
    name: 'nightly index',
    project: 'nightly',
    projectName: 'nightly index',
    scopes: ['inference', 'metrics'],
    allowWiden: true,
    anyProject: false,
    maxClass: 'batch',
    requestsPerMinute: 600,
    tokensPerMinute: 2_000_000,
    usdPerDay: 5,
    createdAtMs: ago(60 * 24 * 3),
    lastUsedAtMs: ago(60 * 9),
    revokedAtMs: null,
  },
];

export function provider(over: Partial<ProviderView> & Pick<ProviderView, 'id' | 'role'>): ProviderView {
  return {
    kind: 'local',
    nodeId: 'n3',
    nodeName: 'mac-studio',
    engineId: 'e1',
    engineKind: 'ollama',
    engineVersion: '0.33.1',
    model: 'qwen3-coder:30b',
    upstream: null,
    slots: 4,
    running: 1,
    queued: 0,
    weight: { total: 61, base: 1, load: 0.67, speed: 0.91 },
    verdict: null,
    state: 'ready',
    reasons: [],
    parkedUntilMs: null,
    present: true,
    loaded: true,
    contextTokens: 32_768,
    maxBatch: 32,
    width: null,
    tokensPerSecond: 33.5,
    itemsPerSecond: null,
    ttftMs: 148,
    ...over,
  };
}

export const NODE_DETAIL: Output<'nodes.detail'> = {
  node: NODES[2] ?? node({ id: 'n3', name: 'mac-studio' }),
  engines: [
    {
      id: 'e1',
      kind: 'ollama',
      version: '0.33.1',
      address: '127.0.0.1:11434',
      reach: 'loopback',
      state: 'ready',
      reason: null,
      slots: 4,
      running: 1,
      queued: 0,
      foreign: 0,
      errorsTotal: 3,
      models: [],
    },
  ],
  providers: [
    provider({ id: 'p1', role: 'code-assistant' }),
    provider({
      id: 'p2',
      role: 'code-embedding',
      model: 'qwen3-embedding:4b',
      state: 'ineligible',
      verdict: { kind: 'vector-incompatible', minCosine: 0.97612, spaceId: 'code-embedding-7f3a91c2' },
      reasons: [said('verdict_failed')],
      weight: null,
      itemsPerSecond: 41.2,
    }),
  ],
  history: {
    atMs: Array.from({ length: 120 }, (_, i) => NOW - (119 - i) * 30_000),
    series: [
      { id: 'running', values: Array.from({ length: 120 }, (_, i) => (i > 60 && i < 72 ? null : (i % 9) % 5)) },
      { id: 'tokensPerSecond', values: Array.from({ length: 120 }, (_, i) => 30 + 6 * Math.sin(i / 7)) },
    ],
  },
};

const MODELS = ['Qwen3-Embedding-4B', 'qwen3-coder:30b', 'bge-reranker-v2-m3', 'code-assistant:cloud'] as const;
export const REQUESTS: readonly RequestView[] = Array.from({ length: 60 }, (_, i) => {
  const failed = i % 17 === 5;
  const cloud = i % 4 === 3;
  return {
    id: `req_${(4096 - i).toString(16)}`,
    atMs: NOW - i * 1700,
    project: i % 5 === 0 ? 'nightly' : 'default',
    projectName: i % 5 === 0 ? 'nightly index' : 'default',
    role: (['code-embedding', 'code-assistant', 'reranker', 'code-assistant'] as const)[i % 4] ?? 'rlm',
    model: MODELS[i % 4] ?? '',
    policy: 'backup' as const,
    policyFrom: 'role' as const,
    class: 'normal' as const,
    route: failed ? null : cloud ? ('cloud' as const) : ('local' as const),
    providerId: failed ? null : 'p1',
    providerName: failed ? null : cloud ? 'openrouter / nebius' : 'workstation',
    outcome: failed ? ('failed' as const) : i < 2 ? ('running' as const) : ('ok' as const),
    errorCode: failed ? 'queue_timeout' : null,
    overflowed: cloud,
    attempts: 1,
    queueMs: (i * 37) % 420,
    firstByteMs: failed ? null : 60 + ((i * 53) % 300),
    totalMs: i < 2 ? null : 240 + ((i * 311) % 4200),
    promptTokens: 120 + i * 31,
    completionTokens: i % 4 === 0 ? 0 : 80 + i * 3,
    costUsd: cloud ? 0.0042 : null,
  };
});

export const TRACE: Output<'requests.get'> = {
  request: REQUESTS[3] as RequestView,
  replay: null,
  steps: [
    {
      step: 'arrived',
      offsetMs: 0,
      path: '/v1/chat/completions',
      bytes: 4210,
      inputs: null,
      promptTokens: 1404,
      maxOutputTokens: 1024,
      notes: [said('noted_pass', { model: 'qwen3-embedding:4b', name: 'attic', checkedOnMs: NOW - 60_000 })],
    },
    {
      step: 'considered',
      offsetMs: 0.2,
      eligible: [
        { providerId: 'p1', name: 'qwen3-coder:30b on workstation', kind: 'local' },
        { providerId: 'p4', name: 'poolside/laguna-s-2.1 on workstation', kind: 'cloud' },
      ],
      refused: [
        {
          providerId: 'p9',
          name: 'qwen3-coder:30b on lab-box',
          kind: 'local',
          reason: said('node_unreachable'),
        },
      ],
    },
    {
      step: 'estimated',
      offsetMs: 0.3,
      waitMs: 4100,
      thresholdMs: 3000,
      busy: 8,
      slots: 8,
      ahead: 3,
      parts: [{ providerId: 'p1', name: 'workstation', slots: 8, serviceMs: 8200 }],
      overflows: true,
    },
    { step: 'permit', offsetMs: 1.1, inFlight: 6, usable: 11, waitedMs: 0.4 },
    {
      step: 'chosen',
      offsetMs: 1.2,
      providerId: 'p4',
      name: 'openrouter',
      kind: 'cloud',
      why: said('only_free'),
      weights: [{ providerId: 'p4', name: 'openrouter', total: 100, base: 1, load: 1, speed: 1 }],
    },
    {
      step: 'attempt',
      offsetMs: 1.3,
      number: 1,
      providerId: 'p4',
      name: 'openrouter',
      result: 'success',
      reason: null,
      lastedMs: 1830,
      range: null,
    },
    { step: 'first-byte', offsetMs: 412 },
    {
      step: 'ended',
      offsetMs: 1832,
      outcome: 'ok',
      error: null,
      promptTokens: 1398,
      completionTokens: 211,
      tokensExact: true,
      costUsd: 0.0042,
      spaceId: null,
    },
  ],
};

const HAPPENED = [
  said('node_closed', { name: 'workstation' }),
  said('gate_pass', { minCosine: 0.9994 }),
  said('budget_cut', { from: 16, to: 8 }),
  said('node_moved', { name: 'lab-box', address: '192.168.1.44:7412' }),
  together(said('credit_exhausted'), said('source_key_limit')),
] as const;

export const EVENTS: readonly EventView[] = Array.from({ length: 400 }, (_, i) => {
  const says = HAPPENED[i % HAPPENED.length] ?? HAPPENED[0];
  return {
    id: `ev${String(i).padStart(6, '0')}`,
    atMs: NOW - (400 - i) * 9000,
    severity: i % 41 === 0 ? ('error' as const) : i % 9 === 0 ? ('warn' as const) : ('info' as const),
    source: (['fleet', 'gate', 'cloud', 'fleet', 'cloud'] as const)[i % 5] ?? 'app',
    code: says.code,
    ...told(says),
    needsPerson: false,
    requestId: i % 5 === 4 ? 'req_ffd' : null,
    nodeId: null,
    providerId: null,
    role: null,
  };
});

export const SPACES: Output<'spaces.list'>['spaces'] = [
  {
    id: 'embedding-0a1b2c3d',
    role: 'embedding',
    width: 512,
    regime: 'local',
    trial: true,
    state: 'current',
    founder: { title: 'this machine', model: 'use-lite-512', nodeName: 'this machine', upstream: null },
    foundedAtMs: ago(60 * 30),
    tokenLimit: 128,
    threshold: 0.99,
    probeSet: '1',
    probes: 48,
    cutDimensions: [],
    passing: 1,
  },
  {
    id: 'code-embedding-7f3a91c2',
    role: 'code-embedding',
    width: 2560,
    regime: 'local',
    trial: false,
    state: 'current',
    founder: { title: 'workstation', model: 'Qwen3-Embedding-4B', nodeName: 'workstation', upstream: null },
    foundedAtMs: ago(60 * 24 * 12),
    tokenLimit: 8192,
    threshold: 0.99,
    probeSet: '1',
    probes: 48,
    cutDimensions: [1024],
    passing: 3,
  },
  {
    id: 'code-embedding-11c0ffee',
    role: 'code-embedding',
    width: 1024,
    regime: 'local',
    trial: false,
    state: 'retained',
    founder: { title: 'lab-box', model: 'bge-m3', nodeName: 'lab-box', upstream: null },
    foundedAtMs: ago(60 * 24 * 80),
    tokenLimit: 8192,
    threshold: 0.99,
    probeSet: '1',
    probes: 48,
    cutDimensions: [],
    passing: 0,
  },
];

export function gateHistory(providerId: string): Output<'gate.history'> {
  const level = providerId === 'v3' ? 0.9761 : providerId === 'v4' ? 0.9968 : 0.9994;
  return {
    threshold: 0.99,
    points: Array.from({ length: 32 }, (_, i) => ({
      atMs: NOW - (31 - i) * 6 * 3_600_000,
      minCosine: level + 0.0004 * Math.sin(i * 1.3),
      verdict: providerId === 'v3' ? ('vector-incompatible' as const) : ('pass' as const),
    })),
  };
}

/** A machine that is being added, as it is just after its command was made. */
export const enrolment = (change: Partial<EnrolmentView> = {}): EnrolmentView => ({
  id: 'e1',
  nodeId: null,
  model: 'qwen3:8b',
  engine: 'ollama',
  baseWeight: 1,
  state: 'waiting',
  createdAtMs: NOW,
  expiresAtMs: NOW + 30 * 60_000,
  steps: [],
  ...change,
});

export const COMMANDS = {
  posix: `f=$(mktemp) && curl -fsS --proto '=https' -k --pinnedpubkey 'sha256//${'A'.repeat(43)}=' -o "$f" 'https://192.168.1.2:40001/e/${'B'.repeat(22)}/sh' && sh "$f"`,
  powershell: '$f = "$env:TEMP\\switchyard-join.ps1"',
};

export const FAILED_STEPS: EnrolmentView['steps'] = [
  {
    code: 'engine',
    sentence: said('enrol_engine').sentence,
    state: 'done',
    percent: null,
    detail: said('enrol_adopted'),
    atMs: NOW,
  },
  {
    code: 'model',
    sentence: said('enrol_model').sentence,
    state: 'failed',
    percent: 40,
    detail: said('enrol_model_failed'),
    atMs: NOW,
  },
];
