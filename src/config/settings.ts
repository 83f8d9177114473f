import { defaultDataDir } from "./data-dir.ts";
import { LIMIT_SETTINGS } from "./limit-settings.ts";
import { SECRET_SETTINGS } from "./secret-settings.ts";
import { optional, type Setting, setting } from "./setting.ts";
import * as kinds from "./value-kinds.ts";

/**
 * Every setting, once. The key is that of the file; the environment variable is `MILLWRIGHT_` and the key in capitals, the flag is the
 * key with dashes; the config object has the same names in camelCase. The reference is printed from here.
 */
export const SETTINGS = {
  "database.url": optional(kinds.databaseUrl(), {
    doc: "PostgreSQL 14 or newer to use. Several hosts (`postgresql://millwright@one:5432,two:5432/millwright`) are those of one cluster: each connection goes to the one that takes writes. Unset: Millwright runs a private one in the data directory.",
    secret: true,
  }),
  "database.pool_size": setting(kinds.integer(4, 500), {
    default: 16,
    doc: "Connections to the database, per replica. A quarter as many again serve lists alone, so that listing a lot holds up nothing else.",
  }),
  "database.restored": optional(kinds.name(), {
    doc: "Names a restore of the database that nothing in it shows: from a snapshot of the storage, or to an earlier point in time, with new data directories. The first start with a name that the database does not know begins a restore review: nothing goes on until a person has said so. Starting again with the same name changes nothing, so it may stay; take a new name for each restore, such as the day. `serve --restored <name>` is short for it.",
  }),
  data_dir: setting(kinds.path("directory"), {
    default: (host, env) => defaultDataDir(host, env),
    defaultDoc: "`/var/lib/millwright` as root, else `$XDG_STATE_HOME/millwright`, else `~/.local/state/millwright`",
    doc: "Where the embedded database, the keys, the dev token and `endpoints.json` live.",
  }),
  "grpc.listen": setting(kinds.listenAddress(), { default: "127.0.0.1:50051", doc: "Where gRPC (HTTP/2) is served." }),
  "http.listen": setting(kinds.listenAddress(), {
    default: "127.0.0.1:8080",
    doc: "Where the API as Connect, gRPC-Web and JSON, and operations (`/healthz`, `/readyz`, `/metrics`) are served.",
  }),
  "boot.listen": optional(kinds.listenAddress(), {
    doc: "Where machines that boot and install reach the server: boot scripts, reports, `/files/` and the seeds of machines that boot from the network answer there and nowhere else, and nothing else answers there. For a network of its own. Unset: on `http.listen`.",
  }),
  "boot.tls": setting(kinds.flag(), {
    default: false,
    doc: "Whether `boot.listen` speaks TLS, with `tls.cert_file`. The iPXE of distributions trusts no authority of your own.",
  }),
  "bmc.listen": optional(kinds.listenAddress(), {
    doc: "Where BMCs reach the server: media and firmware answer there, and their events arrive there, each at an address that nobody can guess and that ends with the work that it is for. Nothing else answers there. Needs `bmc.public_url`. Unset: on `http.listen`.",
  }),
  "bmc.tls": setting(kinds.flag(), {
    default: true,
    doc: "Whether `bmc.listen` speaks TLS, with `tls.cert_file`, where that is set.",
  }),
  "bmc.public_url": optional(kinds.baseUrl(), {
    doc: "Where BMCs reach this server. Unset: `install.public_url`, unless `boot.listen` or `bmc.listen` is set; without both, BMCs are given no media.",
  }),
  "http.allowed_hosts": setting(kinds.hostNames(), {
    default: [],
    doc: "Names that callers may have for this server on `http.listen`, beside `localhost`, IP addresses, the names in `tls.cert_file` and those in the public URLs. A request for another name is refused, since a web page of a stranger may have had its own name resolve to this server. Probes, boot routes and agents of nodes may use any name. `*` admits all names.",
  }),
  "http.allowed_origins": setting(kinds.webOrigins(), {
    default: [],
    doc: "Origins whose web pages may call this server, beside its own: those that people open it at where a proxy in front changes the Host header. `*` admits every web page, also those of strangers.",
  }),
  max_find_by_ids: setting(kinds.integer(1, 1_000), { default: 100, doc: "Ids that one `forge.Forge` call may list." }),

  "auth.mode": setting(kinds.choice(["required", "off"]), {
    default: "required",
    doc: "`off` lets everybody do everything, without a name; allowed only while all listeners are on loopback.",
  }),
  "auth.tokens": setting(kinds.staticTokens(), {
    default: [],
    doc: "Bearer tokens that are known by their SHA-256 alone, beside those kept in the database: a way in before there is any other. Use long random tokens.",
    // Somebody will put the token itself where its hash belongs; the complaint must not print it.
    secret: true,
  }),
  "auth.token_cache": setting(kinds.duration("0s", "60s"), {
    default: "5s",
    doc: "How long a verified token is trusted without asking the database; a token revoked on another replica works this much longer.",
  }),
  "auth.token_max_age": setting(kinds.durationOrOff("1h", "3650d"), {
    default: "90d",
    doc: "The greatest age of tokens made by `millwright token create`: older ones let nobody in. Tokens made before this setting existed count from the upgrade. Tokens of `auth.tokens`, of `millwright dev` and of agents have none. `off`: tokens last until they are revoked, or until the end that they were given.",
  }),
  "auth.session_lifetime": setting(kinds.duration("5m", "30d"), {
    default: "12h",
    doc: "How long somebody who signed in to the console stays signed in. A session ends earlier with the credential that opened it: when its token is revoked or ends, or its JSON Web Token runs out.",
  }),
  "auth.sessions_per_credential": setting(kinds.integer(1, 1_000), {
    default: 20,
    doc: "Sessions of one credential at the same time. Signing in once more ends the oldest of them.",
  }),
  "auth.oidc.issuer": optional(kinds.url(["https", "http"]), {
    doc: "Issuer of the JSON Web Tokens to accept. Unset: none are.",
  }),
  "auth.oidc.audience": optional(kinds.text(), { doc: "The audience that a JSON Web Token must name." }),
  "auth.oidc.jwks_url": optional(kinds.url(["https", "http"]), { doc: "Where the issuer publishes its keys." }),
  "auth.oidc.jwks_file": optional(kinds.path(), {
    doc: "The issuer's keys as a file (a JSON Web Key Set), in place of the URL.",
  }),
  "auth.oidc.name_claim": setting(kinds.text(), {
    default: "sub",
    doc: "The claim that names the caller; it becomes the initiator of requests.",
  }),
  "auth.oidc.roles_claim": setting(kinds.text(), {
    default: "roles",
    doc: "The claim that lists roles or groups; dots reach into objects (`realm_access.roles`).",
  }),
  "auth.oidc.roles": setting(kinds.roleMapping("a value of the roles claim"), {
    default: {},
    doc: "What the issuer's groups may do. With any entry, values without one give nothing, also the names of roles; without entries, a value that is itself the name of a role stands for that role.",
  }),
  "auth.oidc.client_id": optional(kinds.text(), {
    doc: "This server's client at the issuer: people then sign in to the console there (authorization code with PKCE). `<the console's address>/auth/callback` has to be registered as the client's redirect URI. Unset: they sign in with tokens alone.",
  }),
  "auth.oidc.client_secret_file": optional(kinds.path(), {
    doc: "The file with the secret of `auth.oidc.client_id`. Unset: a public client, without a secret.",
  }),
  "auth.oidc.scopes": setting(kinds.text(), {
    default: "openid profile",
    doc: "What the console's sign-in asks the issuer for; `openid` must be among it, and whatever the issuer wants to be asked for before it tells the roles.",
  }),
  "auth.mtls.roles": setting(kinds.roleMapping("`spiffe://…` (a trailing `/*` covers all below), `CN=…` or `OU=…`"), {
    default: {},
    doc: "What the holders of client certificates may do. Entries that match add up; a certificate without any may do nothing.",
  }),
  "tls.cert_file": optional(kinds.path(), {
    doc: "Certificate chain (PEM) of the listeners; `boot.tls` and `bmc.tls` say whether it is that of the machines' too. Unset: no TLS.",
  }),
  "tls.key_file": optional(kinds.path(), { doc: "Private key (PEM) of the certificate." }),
  "tls.client_ca_file": optional(kinds.path(), {
    doc: "Authorities (PEM) whose client certificates are accepted: turns mutual TLS on.",
  }),
  secret_key_file: optional(kinds.path(), {
    doc: "The key that BMC passwords and other secrets are encrypted with. Unset: `secret-key` in the data directory, made at first start.",
  }),

  ...SECRET_SETTINGS,
  ...LIMIT_SETTINGS,

  "log.level": setting(kinds.choice(["trace", "debug", "info", "warn", "error", "fatal", "silent"]), {
    default: "info",
    doc: "The least severe level that is logged.",
  }),
  "log.format": setting(kinds.choice(["auto", "json", "text"]), {
    default: "auto",
    doc: "`auto` writes readable lines to a terminal and JSON elsewhere.",
  }),

  "engine.concurrency": setting(kinds.integer(1, 10_000), {
    default: 1_000,
    doc: "Things worked on at the same time, per replica. Those that wait for a slow device for longer than half a second do not count, up to four times as many.",
  }),
  "engine.stop_grace": setting(kinds.duration("0s", "60s"), {
    default: "5s",
    doc: "How long work under way may go on after a stop was asked for; what is left then is handed over to other replicas.",
  }),
  "engine.sweep_interval": setting(kinds.duration("1s", "1h"), {
    default: "30s",
    doc: "How often the server searches for things that have no wake-up.",
  }),

  "shutdown.runs": setting(kinds.choice(["hand_over", "cancel"]), {
    default: "hand_over",
    doc: "What a stop in good order does with active runs: `hand_over` leaves them to the other replicas, or to the next start; `cancel` cancels all of them, also those that other replicas work on (`serve --cancel-runs` is short for it).",
  }),
  "shutdown.drain_delay": setting(kinds.duration("0s", "5m"), {
    default: "0s",
    doc: "How long a server that is to stop still answers, while `/readyz` says that it is not ready: the time that load balancers need to notice.",
  }),
  "shutdown.cancel_within": setting(kinds.duration("1s", "10m"), {
    default: "20s",
    doc: "How long a stop waits for runs that it cancels. The other replicas, or the next start, end what has not ended in that time.",
  }),

  "bmc.allowed_networks": setting(kinds.networks(), {
    default: [],
    dev: ["127.0.0.0/8"],
    doc: "Networks that Millwright may call devices in. Empty: none, so that no device is reached until you list yours.",
  }),
  "bmc.plain_http": setting(kinds.flag(), {
    default: false,
    dev: true,
    doc: "Whether BMCs and Ironic are called over plain HTTP where the address on record says `http`. Everybody on the way reads the password then. Off: such a device is not called.",
  }),
  "bmc.ca_file": optional(kinds.path(), {
    doc: "Authorities (PEM) that vouch for BMCs whose trust is `ca`, in place of those that the system trusts.",
  }),
  "bmc.accept_new_certificate_after_flash": setting(kinds.flag(), {
    default: false,
    dev: true,
    doc: "Whether a BMC that shows another certificate after a flash of its own firmware is trusted, and sent its password, if it tells the UUID and serial number from before. Somebody between Millwright and the BMC can tell both. Off: the step waits until you accept the certificate.",
  }),
  "bmc.per_bmc_concurrency": setting(kinds.integer(1, 16), {
    default: 2,
    doc: "Requests at a time to one BMC; many of them fall over early.",
  }),
  "ipmi.command": setting(kinds.text("a program, by name or path"), {
    default: "ipmitool",
    doc: "The program with which BMCs that speak IPMI are reached.",
  }),
  "ipmi.cipher": setting(kinds.choice(["auto", "3", "17"]), {
    default: "auto",
    doc: "The cipher suite of IPMI sessions. `auto` tries 17 and then 3; `17` refuses BMCs that know nothing better than SHA-1.",
  }),
  "ipmi.boot_mode": setting(kinds.choice(["uefi", "legacy"]), {
    default: "uefi",
    doc: "The firmware mode that is sent with a boot device over IPMI, which has to name one.",
  }),
  "fake.provider": setting(kinds.choice(["off", "default", "slow", "instant"]), {
    default: "off",
    doc: "Machines of provider `fake`, which exist in this process alone, and how long they take: for demonstrations and measurements. `off`: there are none. They forget everything when the server stops.",
  }),
  "fake.fail": setting(kinds.choices(["netboot", "reboot", "repave", "join", "verify", "rma"]), {
    default: [],
    doc: "What fake machines fail at, each time.",
  }),
  "explorer.interval": setting(kinds.duration("1s", "1d"), {
    default: "60s",
    dev: "5s",
    doc: "How soon an expected device that could not be taken in is tried again.",
  }),
  "monitor.interval": setting(kinds.duration("1s", "1h"), {
    default: "15s",
    doc: "How often a resting device is read. A change made outside is shown within twice this.",
  }),
  "monitor.events": setting(kinds.flag(), {
    default: true,
    doc: "Whether the events of devices are followed where their BMC offers server-sent events (Redfish EventService). An event has the device read at once: a change made outside is shown within 2s.",
  }),
  "monitor.events_push": setting(kinds.flag(), {
    default: true,
    doc: "Whether BMCs that offer subscriptions in place of a stream are asked to send their events to `bmc.public_url`. Their devices are polled as often as without; a change made outside is shown within 3s where the BMC reports it.",
  }),
  "monitor.events_interval": setting(kinds.duration("1s", "1h"), {
    default: "60s",
    doc: "How often a device is read while its events are followed, if that is less often than `monitor.interval`; of machines the BMC alone, everything else is checked as usual. Once no sign of life comes over the stream, the device is read as often as before.",
  }),
  "monitor.events_silence": setting(kinds.duration("1s", "1h"), {
    default: "90s",
    doc: "How long after the last event or keep-alive a stream of events is taken for alive.",
  }),
  "monitor.events_streams": setting(kinds.integer(0, 100_000), {
    default: 2_000,
    doc: "Streams of events at a time, per replica. Each takes a connection to a BMC; devices beyond that are polled.",
  }),
  "conditions.interval": setting(kinds.duration("1s", "1h"), {
    default: "10s",
    doc: "How often each machine is checked to keep its conditions true. A change shows within three times this; at 10s, within 30s.",
  }),
  "conditions.rate": setting(kinds.integer(1, 10_000), {
    default: 100,
    doc: "Checks of machines a second, at most, per replica. A fleet too large for it is checked less often.",
  }),
  "fleet.reconcile_interval": setting(kinds.duration("1s", "1h"), {
    default: "20s",
    doc: "How often the machines of each fleet site's MAAS are listed and compared with the nodes: one call a site, however many nodes there are. A MAAS that needs long for it is asked less often: ten times as long as it needs.",
  }),
  "scripts.directory": optional(kinds.path("directory"), {
    doc: "Scripts (`*.sh`) and Ansible playbooks (`*.yml`, `*.yaml`) of the site, which plans name as `script_ref`; one of the same name takes the place of a shipped one. Read again whenever a run is started; all replicas need the same.",
  }),
  "history.retention": setting(kinds.duration("1d", "36500d"), {
    default: "365d",
    doc: "How long history, audit and events are kept, and after its end the copies of cloud-init documents that a job was started with, and the tasks of the agents of fleet nodes. The last change of state of every thing, and everything of an active run, is kept for ever.",
  }),
  "audit.refusals_kept": setting(kinds.duration("1h", "3650d"), {
    default: "30d",
    doc: "How long failed sign-ins and refused calls stay in the list of `millwright audit list`; of more than a million rows the oldest go earlier.",
  }),
  "install.timeout": setting(kinds.duration("0s", "7d"), {
    default: "60m",
    doc: "How long an attempt at a network install may take; then it counts as failed. `0s`: for ever.",
  }),
  "install.auto_register": setting(kinds.flag(), {
    default: true,
    doc: "Whether a machine that boots from the network and is not known is put on record as discovered.",
  }),
  "install.max_discovered": setting(kinds.integer(0, 1_000_000), {
    default: 10_000,
    doc: "Nodes that a boot from the network has put on record and that nobody has approved, at most. A further machine that nobody knows boots from its disk, and is tried again at its next boot.",
  }),
  "install.discovered_per_minute": setting(kinds.integer(1, 1_000_000), {
    default: 1_000,
    doc: "Of those, new ones a minute, per replica.",
  }),
  "install.discovered_per_address": setting(kinds.integer(1, 1_000_000), {
    default: 100,
    doc: "Of those, new ones an hour from one address, per replica: one machine can invent as many MAC addresses as it likes. Addresses in `limits.exempt_networks` are not held to it; list there a gateway behind which machines boot.",
  }),
  "install.discovered_ttl": setting(kinds.duration("1h", "3650d"), {
    default: "30d",
    doc: "How long a node that a boot has put on record is kept without booting again, where nobody approves it and nothing refers to it; then it is removed.",
  }),
  "install.require_report_tokens": setting(kinds.flag(), {
    default: true,
    doc: "Whether nodes must show, with each report, the token that their boot script gave them. `false`: every host that reaches the boot routes may report an installation as begun, failed or complete; what such a report says of the hardware only fills in what is not known yet. A bearer of role `operator` is as good as a token.",
  }),
  "install.token_binding": setting(kinds.choice(["subnet", "address", "off"]), {
    default: "subnet",
    doc: "From where the token of a boot is good: from the subnet of the address that asked for the boot script (/24, or /64 of IPv6), from that address alone, or from anywhere. A second address that asks for the script of one boot makes the boot contested: what it reports then decides nothing. `off`: every address is as good as another.",
  }),
  "install.armed_for": setting(kinds.duration("1m", "3650d"), {
    default: "24h",
    doc: "How long after approve, retry, deprovision, a run or `millwright node arm` a node may take to boot. A later boot gets no install script, since command lines may hold secrets: it waits until the node is armed again. An erasure that a later boot reports proves nothing.",
  }),
  "install.public_url": optional(kinds.baseUrl(), {
    doc: "Where machines that boot from the network reach this server (`boot.listen`, where it is set). Unset: where each of them did.",
  }),
  "install.files_dir": optional(kinds.path("directory"), {
    doc: "Directory with kernels, initrds and images, served below `/files/` to every host that asks. Unset: none are.",
  }),
  "install.image_networks": setting(kinds.networks(), {
    default: [],
    dev: ["127.0.0.0/8"],
    doc: "Networks that the server may read ISO images from, in order to serve them with a seed in them (`seed_on`). Empty: none.",
  }),
  "install.default_group": optional(kinds.text(), {
    doc: "Id or name of the group of machines that boot from the network before anybody has put them on record.",
  }),
  "install.erase.kernel": optional(kinds.bootLocation(), {
    doc: "Kernel of the environment that erases disks: a URL, or a path below `/files/`. Unset: erasing is refused.",
  }),
  "install.erase.initrd": optional(kinds.bootLocation(), {
    doc: "Its initrd; `millwright netboot environment` makes one.",
  }),
  "rack.claim_wait": setting(kinds.duration("0s", "7d"), {
    default: "30m",
    doc: "How long a requested rack maintenance waits for devices that others work on, and keeps later work off them; then the request expires.",
  }),
  "rack.maintenance_at_once": setting(kinds.integer(1, 100_000), {
    default: 10,
    doc: "Racks that may be in maintenance before one that was ready begins another by itself: for a changed profile or device, or a reprovision. A maintenance that an operator asks for begins in any case, and is counted.",
  }),
  "rack.ingestion_at_once": setting(kinds.integer(1, 100_000), {
    default: 50,
    doc: "The same for racks that were never ready: their first maintenance begins while fewer than so many of them are in maintenance.",
  }),
  "rack.stop_after_failures": setting(kinds.integer(0, 100_000), {
    default: 5,
    doc: "Racks on which maintenance that nobody asked for may fail before none begins by itself any more, until they are mended or `rack maintenance resume`. 0: it never stops.",
  }),
  "rack.firmware_at_once": setting(kinds.integer(1, 1_000), {
    default: 18,
    doc: "Devices of one rack whose firmware is upgraded at the same time.",
  }),
  "rack.power_at_once": setting(kinds.integer(1, 1_000), {
    default: 4,
    doc: "Devices of one rack that are switched on or off at the same time.",
  }),
  "rack.flash_deadline": setting(kinds.duration("1m", "1d"), {
    default: "60m",
    doc: "How long one firmware component of a device may take from the command to the proof.",
  }),
  "host_firmware.retry_interval": setting(kinds.duration("1s", "7d"), {
    default: "60m",
    doc: "How long a tray whose firmware upgrade failed waits before it is tried again by itself.",
  }),
  "host_firmware.max_retries": setting(kinds.integer(0, 100), {
    default: 5,
    doc: "How often a failed firmware upgrade of a tray is tried again by itself.",
  }),
  "firmware.directory": optional(kinds.path("directory"), {
    doc: "Where firmware files are kept, by their digests. Replicas should share it: one that lacks a file downloads it again when a device needs it. Unset: `firmware` in the data directory.",
  }),
  "firmware.allowed_networks": setting(kinds.networks(), {
    default: [],
    dev: ["127.0.0.0/8"],
    doc: "Networks that firmware files may be downloaded from. Empty: none.",
  }),
  "firmware.ca_file": optional(kinds.path(), {
    doc: "A PEM file with certificates of authorities that servers of firmware files are also trusted by, beside those that the runtime trusts.",
  }),
  "firmware.max_artifact_bytes": setting(kinds.integer(1, 1_099_511_627_776), {
    default: 8_589_934_592,
    doc: "The largest firmware file that is downloaded, in bytes.",
  }),
  "firmware.public_url": optional(kinds.baseUrl(), {
    doc: "Where BMCs fetch firmware files from this server, if not at `bmc.public_url`. Unset: as that; without both, files are pushed to BMCs.",
  }),
  "rack_manager.url": optional(kinds.url(["https", "http"]), {
    doc: "The gRPC endpoint of the rack manager, such as `https://rms.site:8801`. It then writes the firmware of racks and configures their fabrics, and is told the credentials of BMCs. Unset: devices are reached through their own BMCs and systems. `http` is for `millwright dev` on loopback alone.",
  }),
  "rack_manager.api": optional(kinds.choice(["d", "h"]), {
    doc: "Which numbering of its messages the rack manager has. Required with `rack_manager.url`: the two contradict each other.",
  }),
  "rack_manager.ca_file": optional(kinds.path(), {
    doc: "Authorities (PEM) that vouch for the rack manager. Unset: those of the system.",
  }),
  "rack_manager.cert_file": optional(kinds.path(), { doc: "Client certificate (PEM) shown to the rack manager." }),
  "rack_manager.key_file": optional(kinds.path(), { doc: "Private key (PEM) of that certificate." }),
  "fleet.allocator.url": optional(kinds.url(["https", "http"]), {
    doc: "A service that prepares fleet nodes for those who use them, and cleans up behind them: it is sent `PUT {url}/allocations/{id}`. It must be in `bmc.allowed_networks`. Unset: an active node is ready for use, and nothing is cleaned up when its use ends. `http` is for a service on this host alone.",
  }),
  "fleet.allocator.token_file": optional(kinds.path(), {
    doc: "A file with the bearer token that the allocator is sent. Required with `fleet.allocator.url`.",
  }),
  "fleet.allocator.ca_file": optional(kinds.path(), {
    doc: "Authorities (PEM) that vouch for the allocator. Unset: those of the system.",
  }),
  "fleet.public_url": optional(kinds.baseUrl(), {
    doc: "Where the agents of fleet nodes reach this server (`http.listen`). Unset: `install.public_url`, unless `boot.listen` is set; without both, nodes are given no bootstrap.",
  }),
  "fleet.task_lease": setting(kinds.duration("1s", "1d"), {
    default: "300s",
    doc: "How long an agent that has taken a task is waited for; it renews as long as it works.",
  }),
  "fleet.task_ttl": setting(kinds.duration("1s", "7d"), {
    default: "900s",
    doc: "How long a task waits for the agent of its node before it is given up.",
  }),
  "fleet.offline_after": setting(kinds.duration("1s", "7d"), {
    default: "180s",
    doc: "How long the agent of a node may be silent before the node counts as offline.",
  }),
  "fleet.agent_wait": setting(kinds.duration("1s", "60s"), {
    default: "20s",
    doc: "The longest that the call of an agent for a task stays open. Each call is a sign of life.",
  }),
  "watch.most": setting(kinds.integer(1, 1_000_000), {
    default: 10_000,
    doc: "Watchers served at the same time, per replica; more are refused.",
  }),
  "otel.accept_traceparent": setting(kinds.flag(), {
    default: true,
    doc: "Whether callers' W3C `traceparent` headers are continued. Spans are recorded once an OpenTelemetry SDK is loaded (`node --import`).",
  }),

  "sim.speed": setting(kinds.factor(0.01, 1_000_000), {
    default: 1,
    dev: 20,
    doc: "How much faster than life simulated hardware is.",
  }),
  "sim.rack_manager": optional(kinds.choice(["d", "h"]), {
    doc: "For `millwright dev`: the simulated site has a rack manager that speaks this numbering, and racks are maintained through it. Unset: it has none.",
  }),
  "sim.seed": setting(kinds.integer(0, 4_294_967_295), { default: 1, doc: "Where the simulator's randomness starts." }),
  "sim.site": setting(
    kinds.text("`racks=N`, `racks=N,joined=M,profile=P,unknown=K,spare=1,maas=H` or the path of a site file"),
    {
      default: "racks=2",
      dev: "racks=2,joined=1,profile=mixed,unknown=1,spare=1,maas=4",
      doc: "What is simulated. With `joined=M` the machines of the last M racks are nodes of `default-cluster` already; `profile=P` says what their BMCs are like, `mixed` for several kinds; with `unknown=K` the first rack has K machines more, which nobody knows and which boot from the network; with `spare=1` the last machine of each rack is in no cluster and has an older system firmware; with `maas=H` there is a MAAS with H servers.",
    },
  ),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

export type SettingKey = keyof typeof SETTINGS;
export const SETTING_KEYS = Object.keys(SETTINGS) as SettingKey[];

export const settingFor = (key: SettingKey): Setting<unknown> => SETTINGS[key];
export const isSettingKey = (key: string): key is SettingKey => Object.hasOwn(SETTINGS, key);

export const envName = (key: string): string => `MILLWRIGHT_${key.replaceAll(".", "_").toUpperCase()}`;
export const flagName = (key: string): string => `--${key.replace(/[._]/g, "-")}`;

/** Variables of ours that are no settings of the server. */
export const OTHER_VARIABLES = {
  MILLWRIGHT_CONFIG: "Path of the config file (YAML or JSON); the flag is `--config`.",
  MILLWRIGHT_SERVER: "For the command line: base URL of the server.",
  MILLWRIGHT_TOKEN: "For the command line: bearer token.",
  MILLWRIGHT_FAILPOINT: "For tests: where the process kills or pauses itself.",
} as const;
