/* gpus.c - the NVIDIA GPUs of a node, in the order of their PCI addresses, and the NUMA node that each is near. The kernel
 * driver's files tell about this machine; nothing of CUDA is loaded. A recorded machine has them among its PCI devices. */
#include "topo/topo.h"

#include <dirent.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA_VENDOR 0x10de
#define PCI_CLASS_DISPLAY 0x03
#define DRIVER_FOLDER "/proc/driver/nvidia/gpus"

/* The logical number, among NUMA nodes with cpus, of that with this set; -1 when there is none. */
static int find_numa(hwloc_topology_t topology, hwloc_const_bitmap_t nodeset)
{
    int number = 0;
    if (!nodeset) return -1;
    for (hwloc_obj_t at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, NULL); at;
         at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, at)) {
        if (hwloc_bitmap_iszero(at->cpuset)) continue;
        if (hwloc_bitmap_isincluded(at->nodeset, nodeset) && hwloc_bitmap_weight(nodeset) == 1) return number;
        number++;
    }
    return -1;
}

static int numa_of_system(hwloc_topology_t topology, const char *pci)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%.32s/numa_node", pci);
    if (!base_read_small(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return -1;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) return -1;
    hwloc_bitmap_only(set, (unsigned)strtoul(text, NULL, 10));
    int numa = find_numa(topology, set);
    hwloc_bitmap_free(set);
    return numa;
}

/* A container may have fewer device files than the driver has GPUs. */
static bool is_usable(const char *pci)
{
    char path[256], text[2048];
    snprintf(path, sizeof path, DRIVER_FOLDER "/%.32s/information", pci);
    if (!base_read_small(path, text, sizeof text)) return false;
    const char *minor = strstr(text, "Device Minor:");
    if (!minor) return false;
    snprintf(path, sizeof path, "/dev/nvidia%lu", strtoul(minor + strlen("Device Minor:"), NULL, 10));
    return access(path, R_OK | W_OK) == 0;
}

static int is_address(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int list_of_system(hwloc_topology_t topology, int *numa, int room)
{
    struct dirent **entries;
    int found = scandir(DRIVER_FOLDER, &entries, is_address, alphasort), count = 0;
    for (int i = 0; i < found; i++) {
        if (count < room && is_usable(entries[i]->d_name)) numa[count++] = numa_of_system(topology, entries[i]->d_name);
        free(entries[i]);
    }
    if (found >= 0) free(entries);
    return count;
}

static bool is_gpu(hwloc_obj_t object)
{
    return object->attr->pcidev.vendor_id == NVIDIA_VENDOR && object->attr->pcidev.class_id >> 8 == PCI_CLASS_DISPLAY;
}

static unsigned long long pci_number(hwloc_obj_t object)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    return (unsigned long long)pci->domain << 24 | (unsigned)pci->bus << 16 | (unsigned)pci->dev << 8 | pci->func;
}

/* The GPU with the lowest address that is at least `low`. */
static hwloc_obj_t next_gpu(hwloc_topology_t topology, unsigned long long low)
{
    hwloc_obj_t next = NULL;
    for (hwloc_obj_t at = hwloc_get_next_pcidev(topology, NULL); at; at = hwloc_get_next_pcidev(topology, at))
        if (is_gpu(at) && pci_number(at) >= low && (!next || pci_number(at) < pci_number(next))) next = at;
    return next;
}

static int list_of_description(hwloc_topology_t topology, int *numa, int room)
{
    int count = 0;
    for (hwloc_obj_t at = next_gpu(topology, 0); at && count < room; at = next_gpu(topology, pci_number(at) + 1))
        numa[count++] = find_numa(topology, hwloc_get_non_io_ancestor_obj(topology, at)->nodeset);
    return count;
}

int topo_node_gpus(const struct topo_node *node, int *numa, int room)
{
    hwloc_topology_t topology = topo_node_hwloc(node);
    return hwloc_topology_is_thissystem(topology) ? list_of_system(topology, numa, room)
                                                  : list_of_description(topology, numa, room);
}
