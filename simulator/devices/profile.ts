/**
 * Ways in which real management controllers are less helpful than the standard asks, each seen on real software.
 * A profile is a set of them. The code that answers asks `device.has("…")` at the place where the trait shows.
 */
export const TRAITS = {
  no_last_reset_time: "shows no LastResetTime",
  no_boot_progress: "shows no BootProgress",
  once_kept_as_continuous:
    "keeps every boot override as Continuous, and cannot keep none: the least is one to the disk",
  lone_disabled_refused: "answers 400 to BootSourceOverrideEnabled without a BootSourceOverrideTarget",
  missing_device_fails: "answers 500 to a boot override to a device that is not there, such as an empty CD drive",
  reason_in_message_only: "gives the reason of an error in error.message alone, with the code GeneralError",
  no_health_rollup: "has no sum of the health of its parts: each says its own alone",
  late_power: "shows and does a power command 1 to 11 s after it was accepted, and shows the old state until then",
  unknown_resets_accepted: "lists no reset types, accepts every word, and does nothing for words that it does not know",
  no_sessions: "offers no sessions: Basic only",
  media_downloaded: "downloads a medium when it is inserted, and refuses one whose address cannot be reached",
  one_virtual_drive: "has one virtual drive: no second medium can be inserted",
  medium_url_hidden: "an installer that it boots cannot see the address of its medium, nor the token in it",
  several_systems: "has a second computer system behind it: that of the next machine in its rack",
  no_events: "offers no server-sent events",
  events_pushed: "offers no stream of events: it sends them to who subscribes",
  events_elsewhere: "names another host as the place of its server-sent events",
  events_hang: "takes the request for server-sent events and never answers it",
  events_silent: "opens the stream of events and never sends anything over it",
  events_without_keep_alive: "sends events, and nothing between them",
  events_forgotten: "keeps the stream of events alive, and forgets to send the events",
  events_drip: "sends bytes over the stream of events without ever ending a line",
  events_flood: "sends events without end, as fast as they are taken",
  events_cut: "cuts the stream after each event",
  events_of_requests: "reports every request that it answers as an event",
  push_only: "takes firmware by HttpPushUri alone",
  multipart_only: "takes firmware by MultipartHttpPushUri alone",
  simple_only: "takes firmware by SimpleUpdate alone",
  tasks_unlisted: "lists no tasks: who does not know a task's address finds none",
  task_without_percent: "shows no PercentComplete",
  task_gone_when_done: "forgets a task as soon as it has ended",
  version_shown_late: "shows the version of new firmware 60 s after it is in use",
  new_certificate_after_flash: "makes itself another certificate when its own firmware was replaced",
  unauthorized_while_starting: "refuses every account for 20 s after it has restarted with new firmware",
  busy_though_taken: "answers 503 to an order for firmware that it has taken",
  version_needs_reset: "uses its own new firmware only after somebody has restarted it",
} as const satisfies Record<string, string>;

export type Trait = keyof typeof TRAITS;
export const TRAIT_NAMES = Object.keys(TRAITS) as readonly Trait[];

/**
 * What cannot be had together with the rest of `worst`:
 * - `one_virtual_drive` with `medium_url_hidden` installs only images that are served with their seed in them (`seed_on`).
 * - `push_only` excludes the other ways to take firmware: one must be left.
 * - `no_events` excludes every odd stream of events: none is offered.
 */
const NOT_IN_WORST: readonly Trait[] = [
  "one_virtual_drive",
  "multipart_only",
  "simple_only",
  ...TRAIT_NAMES.filter((trait) => trait.startsWith("events_")),
];

/** Profiles by name. The name of a trait is a profile too: that of a controller that has this one alone. */
export const PROFILES = {
  ideal: [],
  /** As sushy-tools with libvirt was seen to behave with one domain. */
  sushy_tools: [
    "no_last_reset_time",
    "no_boot_progress",
    "once_kept_as_continuous",
    "lone_disabled_refused",
    "missing_device_fails",
    "reason_in_message_only",
    "no_health_rollup",
    "unknown_resets_accepted",
    "no_sessions",
    "no_events",
  ],
  /** Every unhelpful trait at once, as far as they can be combined. */
  worst: TRAIT_NAMES.filter((trait) => !NOT_IN_WORST.includes(trait)),
} as const satisfies Record<string, readonly Trait[]>;

export type ProfileName = keyof typeof PROFILES | Trait;
export const PROFILE_NAMES = [...Object.keys(PROFILES), ...TRAIT_NAMES] as readonly ProfileName[];

export const traitsOf = (profile: ProfileName | readonly Trait[]): readonly Trait[] => {
  if (typeof profile !== "string") return TRAIT_NAMES.filter((trait) => profile.includes(trait));
  return profile in PROFILES ? PROFILES[profile as keyof typeof PROFILES] : [profile as Trait];
};

/** The name of the profile with exactly these traits, or null where they have no name together. */
export const profileName = (traits: readonly Trait[]): ProfileName | null =>
  PROFILE_NAMES.find((name) => traitsOf(name).join() === traits.join()) ?? null;

/**
 * What `mixed` deals out, one machine after the other: the first machine of every rack is an ideal one. Overrides that are kept for good
 * are left out: they end by time, and faster than life a machine would install itself several times until then. So is
 * `medium_url_hidden`: it needs images with a seed, for which a server must know where BMCs reach it.
 */
export const MIXED: readonly (ProfileName | readonly Trait[])[] = [
  "ideal",
  ["no_last_reset_time", "no_boot_progress", "no_sessions", "push_only", "one_virtual_drive"],
  ["late_power", "task_without_percent"],
  "several_systems",
  [
    "lone_disabled_refused",
    "missing_device_fails",
    "reason_in_message_only",
    "no_health_rollup",
    "unknown_resets_accepted",
    "media_downloaded",
    "new_certificate_after_flash",
  ],
];
