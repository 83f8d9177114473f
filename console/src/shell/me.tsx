import { createContext, useContext } from "react";
import type { Me } from "../api/session.ts";

const MeContext = createContext<Me>({ name: "", roles: [], may: new Set() });

export const MeProvider = MeContext;
/** Who reads, and what the server would let them call (`may`). What it would refuse is not offered. */
export const useMe = (): Me => useContext(MeContext);
