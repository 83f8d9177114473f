import type { ServiceImpl } from "@connectrpc/connect";
import type { SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { refreshDevice } from "../../../services/device/refresh.ts";
import { listOsAddresses, setOsAddress } from "../../../services/expected-switch/os-address.ts";
import { acceptSwitchCertificate } from "../../../services/switch/certificate.ts";
import { pageSwitches, viewSwitch } from "../../../services/switch/view.ts";
import { pageOf } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { logEntriesOf } from "../device-messages.ts";
import { switchOf, switchQueryFrom } from "./switch-messages.ts";

export const switches = (deps: ServiceDeps) =>
  ({
    async listSwitches(request, { values }) {
      const page = await pageSwitches(deps, switchQueryFrom(request, values.get(callerKey)));
      return { switches: page.items.map(switchOf), ...pageOf(page) };
    },
    async getSwitch({ id }) {
      const view = await viewSwitch(deps, id);
      return { switch: switchOf(view), logEntries: logEntriesOf(view.device) };
    },
    async acceptSwitchCertificate({ id, fingerprint, os }, { values }) {
      await acceptSwitchCertificate(deps, values.get(callerKey), { id, fingerprint, os });
      return { switch: switchOf(await viewSwitch(deps, id)) };
    },
    async setExpectedSwitchOsAddress({ bmcMacAddress, osAddress }, { values }) {
      await setOsAddress(deps, values.get(callerKey), { bmcMac: bmcMacAddress, osAddress });
      return {};
    },
    async listExpectedSwitchOsAddresses({ bmcMacAddress }) {
      return { addresses: [...(await listOsAddresses(deps, bmcMacAddress))] };
    },
    async refreshSwitch({ id }) {
      await refreshDevice(deps, { kind: "switch", id, field: "id" });
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof SwitchService>>;
