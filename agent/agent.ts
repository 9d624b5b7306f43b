import os from 'node:os';
import type { Clock } from '../main/domain/time.ts';
import { findEncoder, type StartChild, startChild } from './builtin/child.ts';
import { BuiltinEngine } from './builtin/engine.ts';
import type { CloudSide } from './cloud/create.ts';
import type { OpenRouterEngine } from './cloud/openrouter.ts';
import type { Advertiser, AdvertiserNote } from './discovery/advertiser.ts';
import type { EngineAddress } from './engines/address.ts';
import type { Aliases } from './engines/aliases.ts';
import { engineDefinitions } from './engines/definitions.ts';
import type { ServedEngine } from './engines/engine.ts';
import { EngineFleet } from './engines/fleet.ts';
import { createProcessMarks } from './engines/process-mark.ts';
import { machineGpus } from './gpu/machine.ts';
import type { GpuSampler } from './gpu/sampler.ts';
import { Heartbeats } from './heartbeats.ts';
import { HostLoad } from './host-load.ts';
import type { Controllers } from './session/controllers.ts';
import type { Identity } from './session/identity.ts';
import { KeyRotation, type KeyRotationOptions } from './session/key-rotation.ts';
import { AgentServer } from './session/server.ts';
import { type AgentEvent, type Welcome, WIRE_VERSION } from './wire/control.ts';

export interface AgentParts {
  readonly clock: Clock;
  readonly version: string;
  readonly identity: Identity;
  /** Where the identity is kept: another key can take the place of the present one. Absent: it never changes. */
  readonly keys?: Pick<KeyRotationOptions, 'read' | 'take'>;
  readonly controllers: Controllers;
  readonly host: string;
  readonly port: number;
  readonly name: string | null;
  readonly engines: readonly EngineAddress[];
  readonly aliases?: Aliases;
  /** Let control planes on the network find this agent. Absent: no. */
  readonly advertise?: boolean;
  /** Look for engines at well-known loopback ports. */
  readonly detect: boolean;
  /** Absent: those of this machine. */
  readonly gpus?: GpuSampler;
  /** Starts the built-in encoder's child; null: there is no built-in encoder. Absent: as a child process of Node. */
  readonly startEncoder?: StartChild | null;
  /** The cloud account: an engine, and the lane of keys. Absent: this agent takes no keys. */
  readonly cloud?: (side: CloudSide) => OpenRouterEngine;
  /** Control planes were paired or removed, here or by a command in another process. */
  onControllers?(): void;
  /** A control plane is connected; told again and again. */
  onSeen?(controller: string): void;
  /** A handler failed; for the log of whoever runs the agent. Carries no foreign text. */
  onFault?(sentence: string): void;
}

export interface AgentAddress {
  readonly host: string;
  readonly port: number;
}

/** Composition root of the agent: the one place where its services are made and wired. */
export class Agent {
  readonly server: AgentServer;
  readonly #parts: AgentParts;
  readonly #fleet: EngineFleet;
  readonly #cloud: OpenRouterEngine | null;
  readonly #heartbeats: Heartbeats;
  readonly #gpus: GpuSampler;
  readonly #load = new HostLoad();
  readonly #startedAtMs: number;
  readonly #rotation: KeyRotation | null;
  #advertiser: Advertiser | null = null;
  #address: AgentAddress | null = null;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#startedAtMs = parts.clock.wallMs();
    this.#gpus = parts.gpus ?? machineGpus(parts.clock, process.env);
    const { clock, identity, controllers, host, port } = parts;
    this.#heartbeats = new Heartbeats({
      clock,
      compose: () => this.#compose(),
      send: (heartbeat) =>
        this.server.broadcast(heartbeat, (controller) => {
          parts.onSeen?.(controller);
          return { ...heartbeat, engines: this.#fleet.reportsFor(heartbeat.engines, controller) };
        }),
    });
    const onChange = () => this.#heartbeats.changed();
    const fault = () => parts.onFault?.('A handler of the session failed.');
    this.#rotation =
      parts.keys === undefined
        ? null
        : new KeyRotation({
            ...parts.keys,
            identity,
            controllers: () => controllers.ids(),
            onAnnounced: onChange,
            onTaken: (taken) => this.#show(taken),
            onFault: () => parts.onFault?.('The next key could not be stored; the present one stays.'),
          });
    const cloud = parts.cloud?.({
      send: (controller, message) => void this.server.send(controller, message),
      onChange,
    });
    this.#cloud = cloud ?? null;
    this.#fleet = new EngineFleet({
      clock,
      marks: createProcessMarks(),
      definitions: engineDefinitions(clock),
      named: parts.engines,
      builtIn: [...this.#builtIn(onChange), ...(cloud ? [cloud] : [])],
      ...(parts.aliases === undefined ? {} : { aliases: parts.aliases }),
      ...(parts.detect ? {} : { ports: [] }),
      onChange,
    });
    this.server = new AgentServer({
      identity,
      controllers,
      clock,
      host,
      port,
      welcome: () => this.#welcome(),
      serve: (call) => this.#fleet.serve(call),
      onDetect: () => void this.#fleet.detect(),
      onKnown: (controller, fingerprint) => this.#rotation?.acknowledged(controller, fingerprint),
      onControllers: () => {
        this.#rotation?.look();
        onChange();
        parts.onControllers?.();
      },
      ...(cloud
        ? {
            onPush: (controller, frame) => cloud.push(controller, frame),
            onAsk: (controller, ask) => void cloud.ask(controller, ask).catch(fault),
          }
        : {}),
      onRevoked: (controller) => cloud?.forget(controller),
      onSession: (controller, change) => {
        if (change === 'silent' || change === 'ended') cloud?.abort(controller);
        if (change === 'began') clock.after(0, () => this.#greet(controller)); // when its socket is taken over
      },
      onFault: fault,
    });
  }

  /** Resolves when it listens; engines are still being found then, and reported as they are. */
  async start(): Promise<AgentAddress> {
    const address = await this.server.start();
    this.#address = address;
    this.#rotation?.look();
    this.#gpus.start();
    this.#fleet.start();
    await this.#heartbeats.start();
    if (this.#parts.advertise === true) await this.#advertise(address, this.#parts.identity.fingerprint);
    return address;
  }

  /** Another process has changed the identity's file. */
  async reloadIdentity(): Promise<void> {
    await this.#rotation?.reload();
  }

  async stop(): Promise<void> {
    this.#heartbeats.stop();
    await this.#advertiser?.stop();
    await this.server.stop();
    this.#fleet.stop();
    this.#gpus.stop();
  }

  /** Another key is the agent's. */
  #show(identity: Identity): void {
    this.server.showKey(identity);
    this.server.event({
      t: 'event',
      code: 'agent_key_changed',
      severity: 'info',
      sentence: 'The agent shows its next key from now on.',
    });
    const announced = this.#advertiser;
    if (announced === null || this.#address === null) return;
    this.#advertiser = null;
    const address = this.#address;
    void announced.stop().then(() => this.#advertise(address, identity.fingerprint));
  }

  async #advertise({ host, port }: AgentAddress, fingerprint: string): Promise<void> {
    const { clock, identity, name } = this.#parts;
    // Loaded where it is wanted: the agent of a control plane's own machine never announces itself.
    const { Advertiser: Made } = await import('./discovery/advertiser.ts');
    this.#advertiser = new Made({
      clock,
      interfaces: os.networkInterfaces,
      hint: { id: identity.node, fp: fingerprint },
      name: name ?? os.hostname(),
      host,
      port,
      onNote: (note) => {
        this.#parts.onFault?.(note.sentence);
        this.server.event(eventOf(note));
      },
    });
    this.#advertiser.start();
  }

  /**
   * What keeps this machine from being found, and how its key stands, is told to each control plane that comes. It has found the
   * machine, so that it is no warning.
   */
  #greet(controller: string): void {
    this.#cloud?.greet(controller);
    for (const note of this.#advertiser?.notes() ?? [])
      this.server.send(controller, { ...eventOf(note), severity: 'info' });
  }

  #builtIn(onChange: () => void): readonly ServedEngine[] {
    const start = this.#parts.startEncoder === undefined ? startChild : this.#parts.startEncoder;
    const version = start === null ? null : findEncoder();
    if (start === null || version === null) return [];
    return [new BuiltinEngine({ version, clock: this.#parts.clock, start, onChange })];
  }

  async #compose() {
    return {
      host: await this.#load.read(),
      gpus: [...this.#gpus.latest()],
      engines: this.#fleet.reports(),
      controllers: this.#parts.controllers.count,
      fingerprint: this.#rotation?.announced ?? this.#parts.identity.fingerprint,
    };
  }

  #welcome(): Welcome {
    const { version, identity, name } = this.#parts;
    return {
      t: 'welcome',
      wireVersion: WIRE_VERSION,
      agentVersion: version,
      node: identity.node,
      name: name ?? os.hostname(),
      platform: process.platform,
      arch: process.arch,
      cpu: os.cpus()[0]?.model.trim() ?? null,
      cores: os.availableParallelism(),
      memoryTotalBytes: os.totalmem(),
      pid: process.pid,
      startedAtMs: this.#startedAtMs,
    };
  }
}

const eventOf = ({ code, sentence }: AdvertiserNote): AgentEvent => ({ t: 'event', code, severity: 'warn', sentence });
