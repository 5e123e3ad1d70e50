/* launcher_hosts.c - lists of hosts: what they may say, what is wrong with them, and which names are one host. */
#include "launcher/hostfile.h"
#include "launcher/hosts.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "user@name:slots/gpus=topology*", * for this machine, each host once and separated by blanks. */
static const char *show(const struct hosts *hosts)
{
    static char text[4096];
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < hosts->count && used < sizeof text; i++) {
        const struct hosts_entry *entry = &hosts->entries[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", i ? " " : "",
                                 entry->user ? entry->user : "", entry->user ? "@" : "", entry->name);
        if (entry->slots) used += (size_t)snprintf(text + used, sizeof text - used, ":%d", entry->slots);
        if (entry->gpus >= 0) used += (size_t)snprintf(text + used, sizeof text - used, "/%d", entry->gpus);
        if (entry->topology) used += (size_t)snprintf(text + used, sizeof text - used, "=%s", entry->topology);
        if (entry->local) used += (size_t)snprintf(text + used, sizeof text - used, "*");
    }
    return text;
}

struct pair {
    const char *given, *wanted;
};

static void check_list(const char *given, const char *wanted)
{
    struct hosts hosts = {.count = 0};
    base_error_clear();
    int code = hosts_parse(&hosts, "--host", given);
    if (!code) code = hosts_finish(&hosts, "--host");
    assert_string_equal(code ? base_error_detail() : show(&hosts), wanted);
    hosts_release(&hosts);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct pair lists[] = {
        {"a,b:3,a:2,[::1]:4,fe80::1%eth0,user@c", "a:3 b:3 ::1:4 fe80::1%eth0 user@c"},
        {"n[1-3]", "n1 n2 n3"},
        {"node[01-03,08,10]:2", "node01:2 node02:2 node03:2 node08:2 node10:2"},
        {"n[9-11]", "n9 n10 n11"},
        {"n[099-101]", "n099 n100 n101"},
        {"r[1-2]n[1-2].x", "r1n1.x r1n2.x r2n1.x r2n2.x"},
        {"u@n[1-2]:3", "u@n1:3 u@n2:3"},
        {"n[1-4],^n[2-3]", "n1 n4"},
        {"^n2,n[1-3]", "n1 n3"},
        {"n1,N1,n1.", "n1:3"},
        {"n1:4,n1", "n1:5"},
        {"a.x,a.y,b.x", "a.x a.y b.x"},
        {"n1,n10,n100", "n1 n10 n100"},
        {"10.0.0.1:2,10.0.0.10:3", "10.0.0.1:2 10.0.0.10:3"},
        {"[2001:DB8::1]:2,2001:db8:0::1", "2001:DB8::1:3"},
        {"::ffff:10.0.0.1,10.0.0.1", "::ffff:10.0.0.1:2"},
        {"u@[fe80::1%eth0]:2", "u@fe80::1%eth0:2"},
        {"a:1048576,a:1048576", "a:1048576"},
        {"a.x,^a", "--host: there is no host in it"},
        {"a.x,b,^a", "b"},
        {"a.x,a.y,^a", "--host: 'a' is the short name of more than one host; write the long one"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) check_list(lists[i].given, lists[i].wanted);
}

/* What is wrong, with "--host: '...'" before and the usage behind it. */
static void test_bad_lists(void **state)
{
    (void)state;
    static const struct pair lists[] = {
        {"", "has no usable name"},
        {"a,", "has no usable name"},
        {",a", "has no usable name"},
        {"^", "has no name"},
        {":3", "has no name"},
        {"a:", "has no number of slots"},
        {"a:0", "has no slots"},
        {"a:-1", "has a negative number of slots"},
        {"a:x", "has a bad number of slots"},
        {"a:3x", "has a bad number of slots"},
        {"a:1048577", "has too many slots"},
        {"a:99999999999999999999", "has too many slots"},
        {"^a:3", "excludes a host and has slots"},
        {"a b", "is not a host name"},
        {"a;b", "is not a host name"},
        {"-oProxyCommand=x", "is not a host name"},
        {"-a", "is not a host name"},
        {"12", "is not a host name"},
        {"1.2.3", "is not a host name"},
        {"1.2.3.256", "is not a host name"},
        {"@a", "has no usable user"},
        {"-l@a", "has no usable user"},
        {"u v@a", "has no usable user"},
        {"[::1", "is not an IPv6 address"},
        {"[::1]x", "has something behind its bracket"},
        {"[::1]:", "has no number of slots"},
        {"::1::2", "is not an IPv6 address"},
        {"fe80::1%", "is not an IPv6 address"},
        {"a:b:c", "is not an IPv6 address"},
        {"n[1-3", "has a bracket that is not closed"},
        {"n[]", "has a bad range"},
        {"n[a-b]", "has a bad range"},
        {"n[1-]", "has a bad range"},
        {"n[1,,2]", "has a bad range"},
        {"n[1-2-3]", "has a bad range"},
        {"n[3-1]", "has a range that ends before it begins"},
        {"n[1-999999999]", "has too many names"},
        {"n[1-9999999999]", "has a bad range"},
        {"n]1", "is not a host name"},
        {"n[1-100000]x[1-9]", "has too many names"},
        {"n[1-100000],m[1-100000]", "more than 131072 hosts"},
        {"n[1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1][1,1,1,1]", "has too many names"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct hosts hosts = {.count = 0};
        base_error_clear();
        assert_int_equal(hosts_parse(&hosts, "--host", lists[i].given), NCCLX_ERR_ARG);
        if (!strstr(base_error_detail(), lists[i].wanted)) fail_msg("%s: %s", lists[i].given, base_error_detail());
        hosts_release(&hosts);
    }
}

/* Escapes in `text` are C's. */
static void check_file(const char *text, size_t bytes, const char *wanted)
{
    struct hosts hosts = {.count = 0};
    base_error_clear();
    int code = hostfile_parse(&hosts, "f", text, bytes);
    if (!code) code = hosts_finish(&hosts, "f");
    assert_string_equal(code ? base_error_detail() : show(&hosts), wanted);
    hosts_release(&hosts);
}

static void test_hostfile(void **state)
{
    (void)state;
    static const struct pair files[] = {
        {"a\nb\n", "a b"},
        {"a slots=4", "a:4"},
        {"a slots=4\r\nb:2\r\n", "a:4 b:2"},
        {"a\r", "a"},
        {"# hosts\n\n  \t\na # the first\n\tb:2\t# second\n#c", "a b:2"},
        {"a slots = 4 gpus =2", "a:4/2"},
        {"a\tgpus=0\tslots=3", "a:3/0"},
        {"node[01-03] slots=2\n^node02", "node01:2 node03:2"},
        {"^node02\nnode[01-03]:2 gpus=8", "node01:2/8 node03:2/8"},
        {"u@a slots=2\n[2001:db8::1]:3\n2001:db8::2 slots=1", "u@a:2 2001:db8::1:3 2001:db8::2:1"},
        {"a\na\na\nb\na", "a:4 b"},
        {"a slots=2\nb\na slots=3", "a:5 b"},
        {"a topology=package:2 core:4 pu:2 # big", "a=package:2 core:4 pu:2"},
        {"a slots=1 topology = pack:1 core:2", "a:1=pack:1 core:2"},
        {"\xef\xbb\xbf"
         "a\nb",
         "a b"},
        {"", "f: there is no host in it"},
        {"# only\n\n", "f: there is no host in it"},
        {"a\n^a", "f: there is no host in it"},
        {"u@a\nv@a", "host a has two users, u and v"},
        {"a\nb slots=-1\n", "f:2: 'slots=-1' is negative"},
        {"a\n\n# x\nb slots=0\n", "f:4: 'slots=0' is too small"},
        {"a slots=1048577", "f:1: 'slots=1048577' is too large"},
        {"a slots=99999999999999999999999", "f:1: 'slots=99999999999999999999999' is too large"},
        {"a slots=four", "f:1: 'slots=four' is not a number"},
        {"a slots=4x", "f:1: 'slots=4x' is not a number"},
        {"a slots=", "f:1: 'slots=' has no number"},
        {"a slots=- 3", "f:1: 'slots=-' has no number"},
        {"a slots=1 slots=2", "f:1: 'slots=2' is given twice"},
        {"a gpus=1 gpus=2", "f:1: 'gpus=2' is given twice"},
        {"a gpus=5000", "f:1: 'gpus=5000' is too large"},
        {"a:2 slots=2", "f:1: 'a:2' has its slots given twice; write NAME or NAME:SLOTS"},
        {"a 4", "f:1: '4' is not one of slots=N, gpus=N and topology=DESCRIPTION"},
        {"a max_slots=4", "f:1: 'max_slots=4' is not one of slots=N, gpus=N and topology=DESCRIPTION"},
        {"a topology=", "f:1: 'topology=' has no description"},
        {"a,b", "f:1: 'a,b' is a list; write one host a line"},
        {"^a slots=2", "f:1: '^a' excludes a host; nothing may stand beside it"},
        {"b\n^a:2", "f:2: '^a:2' excludes a host and has slots; write NAME or NAME:SLOTS"},
        {"b\n\x7f"
         "ELF",
         "f:2: byte 0x7f does not belong into a list of hosts"},
        {"b\n\xff", "f:2: byte 0xff does not belong into a list of hosts"},
        {"n[1-3", "f:1: 'n[1-3' has a bracket that is not closed; write NAME or NAME:SLOTS"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        check_file(files[i].given, strlen(files[i].given), files[i].wanted);
    check_file("a\0b", 3, "f:1: byte 0x00 does not belong into a list of hosts");
    char line[5000];
    memset(line, 'a', sizeof line);
    check_file(line, sizeof line, "f:1: the line is longer than 4095 bytes");
    line[0] = '#'; /* comments have any length */
    line[4997] = '\n';
    check_file(line, sizeof line, "aa");
    memset(line, 'a', sizeof line);
    base_error_clear();
    struct hosts hosts = {.count = 0};
    assert_int_equal(hostfile_parse(&hosts, "f", line, 300), NCCLX_ERR_ARG);
    assert_non_null(strstr(base_error_detail(), "is too long"));
    hosts_release(&hosts);
}

static void test_unreadable(void **state)
{
    (void)state;
    static const struct pair files[] = {
        {"/no/such/file", "--hostfile: /no/such/file: No such file or directory"},
        {"/", "--hostfile: /: Is a directory"},
        {"/dev/zero", "--hostfile: /dev/zero: it is larger than 16 MiB, so it is no list of hosts"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct hosts hosts = {.count = 0};
        assert_int_equal(hostfile_read(&hosts, files[i].given), NCCLX_ERR_ARG);
        assert_string_equal(base_error_detail(), files[i].wanted);
        hosts_release(&hosts);
    }
}

static void test_slurm(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *slots, *wanted, *cpus;
    } lists[] = {
        {"n[1-4]", "2(x3),1", "n1:2 n2:2 n3:2 n4:1", NULL},
        {"n1", "16", "n1:16", NULL},
        {"tux[01-02],login", "4(x2),1", "tux01:4 tux02:4 login:1", NULL},
        {"a[1-2]b[1-2]", "1,2,3,4", "a1b1:1 a1b2:2 a2b1:3 a2b2:4", NULL},
        {"n[1-2]", NULL, "n1 n2", NULL},
        {"n[1-2]", "1", "n1 n2", NULL}, /* of a step: not for these nodes */
        {"n[1-2]", "1", "n1:3 n2:5", "3,5"},
        {"n[1-2]", "4(x2)", "n1:4 n2:4", "3,5"},
        {"n[1-2]", NULL, "n1 n2", "3"},
        {"n[1-2]", "1(x3)", "n1 n2", NULL},
        {"n[1-2]", "1(x", "n1 n2", NULL},
        {"n[1-2]", "x", "n1 n2", NULL},
        {"n[1-2]", "0(x2)", "n1 n2", NULL},
        {"n[1-2]", "99999999999(x2)", "n1 n2", NULL},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct hosts hosts = {.count = 0};
        assert_int_equal(hosts_parse_slurm(&hosts, lists[i].nodes, lists[i].slots, lists[i].cpus), NCCLX_SUCCESS);
        assert_string_equal(show(&hosts), lists[i].wanted);
        hosts_release(&hosts);
    }
    struct hosts hosts = {.count = 0};
    assert_int_equal(hosts_parse_slurm(&hosts, "n[1-", "1", NULL), NCCLX_ERR_ARG);
    assert_non_null(strstr(base_error_detail(), "SLURM_JOB_NODELIST"));
    hosts_release(&hosts);
}

static void test_restrict(void **state)
{
    (void)state;
    static const struct {
        const char *list, *chosen, *wanted;
    } cases[] = {
        {"a:4,b:2,c", "b,a", "b:2 a:4"},
        {"a:4,b:2,c", "a:3,c:9", "a:3 c:9"},
        {"a:4,b:2,c", "^b", "a:4 c"},
        {"a:4,b:2,c", "^b,^d", "a:4 c"},
        {"n[1-4]:2", "n[2-3]", "n2:2 n3:2"},
        {"n[1-4]:2", "n[1-4],^n3", "n1:2 n2:2 n4:2"},
        {"a.x:4,b.x", "a", "a.x:4"},
        {"a.x:4,b.x", "a,a.x", "a.x:4"},
        {"a:4,b", "a.x", "a:4"},
        {"a.x,a.y", "a.y", "a.y"},
        {"a.x,a.y", "^a.y", "a.x"},
        {"a:4,b", "a,a", "a:2"},
        {"a.x,a.y", "a", "--host: 'a' is the short name of more than one host; write the long one"},
        {"n1,n10", "n100", "--host: 'n100' is not a host of f"},
        {"n1,n10", "n1,m", "--host: 'm' is not a host of f"},
        {"a:4", "a:5", "--host: 'a' has 4 slots in f, not 5"},
        {"a:4", "^a", "--host: no host of f is left"},
        {"a:4,b", "a,^a", "--host: no host of f is left"},
        {"10.0.0.1:2,10.0.0.2", "10.0.0.2", "10.0.0.2"},
        {"[2001:db8::1]:2,b", "2001:DB8:0::1", "2001:db8::1:2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hosts hosts = {.count = 0}, wanted = {.count = 0};
        base_error_clear();
        assert_int_equal(hosts_parse(&hosts, "f", cases[i].list), NCCLX_SUCCESS);
        assert_int_equal(hosts_finish(&hosts, "f"), NCCLX_SUCCESS);
        assert_int_equal(hosts_parse(&wanted, "--host", cases[i].chosen), NCCLX_SUCCESS);
        int code = hosts_restrict(&hosts, "f", &wanted, "--host");
        assert_string_equal(code ? base_error_detail() : show(&hosts), cases[i].wanted);
        hosts_release(&hosts);
        hosts_release(&wanted);
    }
}

/* ---- Who is who -------------------------------------------------------------------------------------------------- */

/* "name=address" of what the name service says, separated by blanks; this machine is login.x with 10.0.0.9. */
static void identify(const char *list, const char *found, const char *wanted, bool lookup)
{
    struct hosts hosts = {.count = 0};
    struct hosts_address own[2];
    struct hosts_found answers[16];
    struct hosts_facts facts = {.own_name = "login.x", .own = own, .own_count = 2, .found = answers};
    assert_true(hosts_read_address("10.0.0.9", &own[0]) && hosts_read_address("2001:db8::9", &own[1]));
    assert_int_equal(hosts_parse(&hosts, "h", list), NCCLX_SUCCESS);
    assert_int_equal(hosts_finish(&hosts, "h"), NCCLX_SUCCESS);
    if (hosts_want_lookup(&hosts, &facts) != lookup) fail_msg("%s: lookup", list);
    char text[256], *rest = text, *word;
    snprintf(text, sizeof text, "%s", found);
    while ((word = strsep(&rest, " "))) {
        char *address = strchr(word, '=');
        if (!address) continue;
        *address++ = 0;
        for (int i = 0; i < hosts.count; i++)
            if (!strcmp(hosts.entries[i].key, word)) answers[facts.found_count].host = i;
        assert_true(hosts_read_address(address, &answers[facts.found_count++].address));
    }
    assert_int_equal(hosts_identify(&hosts, &facts), NCCLX_SUCCESS);
    if (strcmp(show(&hosts), wanted)) fail_msg("%s: %s, wanted %s", list, show(&hosts), wanted);
    hosts_release(&hosts);
}

static void test_identity(void **state)
{
    (void)state;
    identify("localhost:2,127.0.0.1,login,[::1]:3", "", "localhost:7*", true);
    identify("login.x,a", "", "login.x* a", false);
    identify("login.y,a", "login.y=10.0.0.8 a=10.0.0.7", "login.y a", true);
    identify("LOGIN.X:2,127.1.2.3:2", "", "LOGIN.X:4*", false);
    identify("10.0.0.9:2,a", "a=10.0.0.1", "10.0.0.9:2* a", false);
    identify("2001:db8::9,10.0.0.9", "", "2001:db8::9:2*", false);
    identify("login", "", "login*", true);                             /* the long form of it, until told otherwise */
    identify("login,a", "login=10.0.7.7 a=10.0.7.8", "login a", true); /* somebody else's */
    identify("a,b", "a=10.0.0.1 b=10.0.0.2", "a b", true);
    identify("a,front", "a=10.0.0.1 front=10.0.0.9", "a front*", true); /* an alias of this machine */
    identify("a,front", "front=127.0.1.1", "a front*", true);
    identify("a:2,10.0.0.1:3,b", "a=10.0.0.1 b=10.0.0.2", "a:5 b", true);
    identify("a:2,10.0.0.1:3,b", "", "a:2 10.0.0.1:3 b", true);
    identify("a,a.x,b", "", "a:2 b", true);
    identify("a,a.x,b", "a=10.0.0.1 a.x=10.0.0.1 b=10.0.0.2", "a:2 b", true);
    identify("a,a.x,b", "a=10.0.0.1 a.x=10.0.0.3 b=10.0.0.2", "a a.x b", true);
    identify("a,a.x,a.y", "", "a a.x a.y", true); /* of which is it the short name? */
    identify("a,a.x,a.y", "a=10.0.0.2 a.x=10.0.0.1 a.y=10.0.0.2", "a:2 a.x", true);
    identify("n1,n1-ib,n1.x", "", "n1:2 n1-ib", true);
    identify("n1,n10,n100.x", "", "n1 n10 n100.x", true);
    identify("fe80::1%eth0,fe80::1%eth1", "", "fe80::1%eth0 fe80::1%eth1", false);
    identify("a,b,10.0.0.1", "a=10.0.0.1 b=10.0.0.1", "a:3", true);
    identify("u@a,a.x", "", "u@a:2", true);
}

static void test_names_of_a_batch_system(void **state)
{
    (void)state;
    struct hosts hosts = {.count = 0};
    struct hosts_facts facts = {.own_name = "n2", .names_only = true};
    assert_int_equal(hosts_parse_slurm(&hosts, "n[1-3]", "1(x3)", NULL), NCCLX_SUCCESS);
    assert_false(hosts_want_lookup(&hosts, &facts));
    assert_int_equal(hosts_identify(&hosts, &facts), NCCLX_SUCCESS);
    assert_string_equal(show(&hosts), "n1:1 n2:1* n3:1");
    hosts_release(&hosts);
}

/* Many hosts take no time that grows with their square. */
static void test_many(void **state)
{
    (void)state;
    struct hosts hosts = {.count = 0}, wanted = {.count = 0};
    struct hosts_facts facts = {.own_name = "n77"};
    assert_int_equal(hosts_parse(&hosts, "h", "n[1-65536],n[1-65536].x"), NCCLX_SUCCESS);
    assert_int_equal(hosts_finish(&hosts, "h"), NCCLX_SUCCESS);
    assert_int_equal(hosts.count, 131072);
    assert_int_equal(hosts_parse(&wanted, "h", "n[1-65536],^n[1-65000]"), NCCLX_SUCCESS);
    assert_false(hosts_want_lookup(&hosts, &facts));
    assert_int_equal(hosts_identify(&hosts, &facts), NCCLX_SUCCESS);
    assert_int_equal(hosts.count, 65536);
    assert_true(hosts.entries[76].local);
    assert_int_equal(hosts_restrict(&hosts, "h", &wanted, "--host"), NCCLX_SUCCESS);
    assert_int_equal(hosts.count, 536);
    hosts_release(&hosts);
    hosts_release(&wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),    cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_hostfile), cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_slurm),    cmocka_unit_test(test_restrict),
        cmocka_unit_test(test_identity), cmocka_unit_test(test_names_of_a_batch_system),
        cmocka_unit_test(test_many),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
