import { collectSteps } from "../model/step.ts";
import { join } from "./join.ts";
import { net } from "./net.ts";
import { netboot } from "./netboot.ts";
import { reboot } from "./reboot.ts";
import { repave } from "./repave.ts";
import { rma } from "./rma.ts";
import { ssh } from "./ssh.ts";
import { verify } from "./verify.ts";

/** Every kind of step there is. */
export const allSteps = collectSteps([ssh, reboot, netboot, repave, join, verify, net, rma]);
