/**
 * How nodes of a profile are brought up. Requests to onboard a node name a profile; they never override a field of it.
 */
export interface FleetPolicy {
  readonly site_bootstrap_bundle_ref: string | null;
  /** Refuse to deploy unless the port that boots is linked as MAAS needs it. */
  readonly strict_pxe_preflight: boolean;
  readonly enable_phase2_roce: boolean;
  readonly require_hw_sync: boolean;
  readonly hardware_sync_interval: string;
  /** Release without erasing where erasing fails. */
  readonly release_fallback_no_erase: boolean;
  readonly enable_deploy_retry_on_datasource_failure: boolean;
  readonly max_deploy_retry_attempts: number;
  /** Take the one New machine that MAAS has, where no machine has the node's name or address. */
  readonly auto_claim_single_new_machine: boolean;
  readonly batch_max_parallel: number;
  readonly enrollment_token_ttl_seconds: number;
  /** Who installs the agent over SSH where its enrolment times out, with the key of the machine; null: nobody does. */
  readonly ssh_username: string | null;
  /** Null: the default of MAAS. */
  readonly distro_series: string | null;
}

/** What holds where a profile does not say. */
export const DEFAULT_POLICY: FleetPolicy = {
  site_bootstrap_bundle_ref: null,
  strict_pxe_preflight: true,
  enable_phase2_roce: false,
  require_hw_sync: true,
  hardware_sync_interval: "15m",
  release_fallback_no_erase: false,
  enable_deploy_retry_on_datasource_failure: true,
  max_deploy_retry_attempts: 2,
  auto_claim_single_new_machine: false,
  batch_max_parallel: 5,
  enrollment_token_ttl_seconds: 3_600,
  ssh_username: null,
  distro_series: null,
};
