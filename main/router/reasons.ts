/**
 * Every reason for which a provider does not take an item. Codes are stable: they are kept on traces and shown by the admin
 * API. `passes` says whether waiting may help: such a provider keeps an item from failing at once.
 */
interface ReasonDefinition {
  readonly sentence: string;
}

export const REASONS = {
  role_disabled: { sentence: 'The role is switched off.' },
  other_model: { sentence: 'It serves another model than the one asked for.' },
  policy_local: { sentence: 'The request may not leave the network and this provider is in the cloud.' },
  policy_cloud: { sentence: 'The request goes to the cloud only and this provider is local.' },
  model_absent: { sentence: 'The model is not on the machine.' },
  context_too_small: { sentence: 'Prompt and answer do not fit its context window.' },
  below_speed_floor: { sentence: 'It is slower than the floor of tokens per second set for the role.' },
  no_upstream_pin: { sentence: 'Cloud embeddings need a pinned upstream and none is pinned.' },
  verdict_failed: { sentence: 'Its vectors did not pass the check for this space.' },
  verdict_reduced: { sentence: 'It passed only the reduced check, which does not count in a locally founded space.' },
  probe_failed: { sentence: 'The check of its vectors could not be completed; it is repeated.' },
  unverified: { sentence: 'Its vectors have not been checked for this space yet.' },
  node_draining: { sentence: 'Its machine is draining: running work ends, nothing new starts.' },
  node_maintenance: { sentence: 'Its machine is under maintenance.' },
  node_error: { sentence: 'Its machine reports an error.' },
  node_unreachable: { sentence: 'Its machine cannot be reached.' },
  node_unknown: { sentence: 'The state of its machine is not known yet, as after sleep.' },
  node_silent: { sentence: 'Its machine has not answered for 3 seconds.' },
  engine_unreachable: { sentence: 'Its engine does not answer its probes.' },
  cloud_paused: { sentence: 'The operator has paused the cloud.' },
  cloud_off: { sentence: 'The cloud account cannot be used now: credit, key or limit.' },
  key_missing: { sentence: 'Its agent holds no cloud key.' },
  key_stale: { sentence: 'Its agent holds an older cloud key than the newest push.' },
  spend_cap: { sentence: 'A spend cap has been reached.' },
  free_tier_spent: { sentence: 'The free-tier limit of the day is used up.' },
  cooling: { sentence: 'It said that it is busy and is left alone for a moment.' },
  parked: { sentence: 'It failed twice in a row or fell silent and is parked until its next trial.' },
  already_tried: { sentence: 'It has already failed this request.' },
} as const satisfies Record<string, ReasonDefinition>;

export type ReasonCode = keyof typeof REASONS;
