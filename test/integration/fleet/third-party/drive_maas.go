// Juju's MAAS client takes a server from New to Deployed and back to Ready, as Juju does.
//
// Usage: drive_maas URL API_KEY IPMI_ADDRESS IPMI_USERNAME IPMI_PASSWORD. Prints a line of JSON.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/juju/gomaasapi"
)

func check(err error, doing string) {
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", doing, err)
	os.Exit(1)
}

var controller gomaasapi.Controller

func only(args gomaasapi.MachinesArgs) gomaasapi.Machine {
	machines, err := controller.Machines(args)
	check(err, "machines")
	if len(machines) != 1 {
		check(fmt.Errorf("%d machines", len(machines)), "machines")
	}
	return machines[0]
}

func await(id string, status string) gomaasapi.Machine {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		machine := only(gomaasapi.MachinesArgs{SystemIDs: []string{id}})
		if machine.StatusName() == status {
			return machine
		}
		if time.Now().After(deadline) {
			check(fmt.Errorf("it is %s", machine.StatusName()), "awaiting "+status)
		}
	}
}

func main() {
	baseURL, key := os.Args[1], os.Args[2]
	_, err := gomaasapi.NewController(gomaasapi.ControllerArgs{BaseURL: baseURL, APIKey: "one:two:three", HTTPClient: http.DefaultClient})
	refused := gomaasapi.IsPermissionError(err)
	controller, err = gomaasapi.NewController(gomaasapi.ControllerArgs{BaseURL: baseURL, APIKey: key, HTTPClient: http.DefaultClient})
	check(err, "sign-in")
	images, err := controller.BootResources()
	check(err, "boot resources")
	id := only(gomaasapi.MachinesArgs{}).SystemID()

	client, err := gomaasapi.NewAuthenticatedClient(gomaasapi.AddAPIVersionToURL(baseURL, "2.0"), key)
	check(err, "sign-in")
	place := gomaasapi.NewMAAS(*client).GetSubObject("machines").GetSubObject(id)
	power := url.Values{"power_type": {"ipmi"}, "power_parameters_power_address": {os.Args[3]},
		"power_parameters_power_user": {os.Args[4]}, "power_parameters_power_pass": {os.Args[5]}}
	_, err = place.Update(power)
	check(err, "power")
	_, err = place.CallPost("commission", url.Values{})
	check(err, "commission")
	ready := await(id, "Ready")

	machine, _, err := controller.AllocateMachine(gomaasapi.AllocateMachineArgs{Hostname: ready.Hostname()})
	check(err, "allocate")
	_, _, err = controller.AllocateMachine(gomaasapi.AllocateMachineArgs{Hostname: ready.Hostname()})
	taken := gomaasapi.IsNoMatchError(err)
	check(machine.SetOwnerData(map[string]string{"fleet": "gpu"}), "owner data")
	check(machine.Start(gomaasapi.StartArgs{UserData: "I2Nsb3VkLWNvbmZpZwo=", DistroSeries: "noble"}), "start")
	conflict := gomaasapi.IsBadRequestError(machine.Start(gomaasapi.StartArgs{}))
	deployed := await(id, "Deployed")
	check(controller.ReleaseMachines(gomaasapi.ReleaseMachinesArgs{SystemIDs: []string{id}, Comment: "done"}), "release")
	released := await(id, "Ready")

	err = json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"refused": refused, "images": len(images), "ports": len(ready.InterfaceSet()), "disks": len(ready.PhysicalBlockDevices()),
		"boots_from": ready.BootInterface().Name(), "taken": taken, "again": conflict, "series": deployed.DistroSeries(),
		"addresses": len(deployed.IPAddresses()), "fleet": deployed.OwnerData()["fleet"], "owner_data_after": len(released.OwnerData()),
	})
	check(err, "answer")
}
