/** Environment, file and flags → one typed, validated config. The settings are in `config/settings.ts`. */
export { checkFiles } from "./config/check-files.ts";
export { describeConfig, describeOtherVariables, printConfig, redactUrl, type SettingRow } from "./config/describe.ts";
export { publicUrlsOf } from "./config/listeners.ts";
export { type Config, type LoadedConfig, type LoadOptions, loadConfig, namesOf, type Profile } from "./config/load.ts";
export { createAddressFilter, isLoopback } from "./config/networks.ts";
export type { ListenAddress, RoleMapping, StaticToken } from "./config/value-kinds.ts";
