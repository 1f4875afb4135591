/* The program of the light app: hosts Python inside itself, so that Dock, menu and permissions belong to Pomona.
 *
 * Python and the packages are no part of the bundle. At the first run the uv inside it makes an environment in
 * Pomona's one folder; a script in Resources shows that, does most of it and starts this program again:
 *
 *   Pomona ── is FOLDER/app/BUILD/ready there? ── yes ──► load its libpython, run `pomona WORDS` in this process
 *                         │ no
 *                         ▼
 *          ask ──► uv venv ──► load its libpython, run first_setup.py in this process ──► exec Pomona
 *
 * Python takes its environment from argv[0], which therefore names the environment's python (PEP 405); so processes
 * that Pomona starts by sys.executable are ordinary ones. The same file compiles on Linux, where the tests run it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#define FOLDER_IN_HOME "Library/Application Support/Pomona"
#define LIBRARY "libpython%s.dylib"
#else
#define FOLDER_IN_HOME ".local/share/pomona"
#define LIBRARY "libpython%s.so.1.0"
#endif

extern char **environ;

static char own[PATH_MAX];       /* Pomona.app/Contents/MacOS/Pomona */
static char contents[PATH_MAX];  /* Pomona.app/Contents */
static char app_folder[PATH_MAX];  /* FOLDER/app */
static char environment[PATH_MAX]; /* FOLDER/app/BUILD/venv */
static char build[64], python_version[16];

/* One sentence for the person, and the end. Nobody sees standard error of an app, so on a Mac it is a dialog too. */
static _Noreturn void fail(const char *format, ...) {
    char words[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    fprintf(stderr, "Pomona: %s\n", words);
#ifdef __APPLE__
    char *dialog[] = {"osascript", "-e", "on run argv", "-e",
                      "display alert \"Pomona cannot start\" message (item 1 of argv) as critical", "-e", "end run",
                      words, NULL};
    pid_t child;
    if (posix_spawn(&child, "/usr/bin/osascript", NULL, NULL, dialog, environ) == 0) waitpid(child, NULL, 0);
#endif
    exit(1);
}

/* Writes a path; one that is too long ends the program. */
static void join(char *path, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, size, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= size) fail("The path %s is too long; move Pomona to another folder.", path);
}

/* Runs a program to its end; returns its exit status, -1 if it could not be started. */
static int run(char *const words[]) {
    pid_t child;
    int status;
    if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void find_bundle(void) {
    char raw[PATH_MAX];
#ifdef __APPLE__
    uint32_t size = sizeof raw;
    if (_NSGetExecutablePath(raw, &size) != 0) fail("Its own path is too long; move it to another folder.");
#else
    ssize_t length = readlink("/proc/self/exe", raw, sizeof raw - 1);
    if (length < 0) fail("It cannot find itself.");
    raw[length] = '\0';
#endif
    if (realpath(raw, own) == NULL) fail("It cannot find itself.");
    join(contents, sizeof contents, "%s", own);
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(contents, '/');
        if (slash == NULL) fail("%s is no part of an app.", own);
        *slash = '\0';
    }
}

/* The first line of a file in Resources. */
static void read_line(char *line, int size, const char *name) {
    char path[PATH_MAX];
    join(path, sizeof path, "%s/Resources/%s", contents, name);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, size, file) == NULL) fail("The app is not whole (%s); get it again.", path);
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
}

static void find_environment(void) {
    char folder[PATH_MAX];
    const char *given = getenv("POMONA_HOME"), *home = getenv("HOME");
    if (given != NULL && *given != '\0') join(folder, sizeof folder, "%s", given);
    else if (home != NULL && *home != '\0') join(folder, sizeof folder, "%s/" FOLDER_IN_HOME, home);
    else fail("There is no home folder (HOME is not set).");
    read_line(build, sizeof build, "build");
    read_line(python_version, sizeof python_version, "python-version");
    join(app_folder, sizeof app_folder, "%s/app", folder);
    join(environment, sizeof environment, "%s/%s/venv", app_folder, build);
}

static int is_ready(void) {
    char path[PATH_MAX];
    struct stat found;
    join(path, sizeof path, "%s/%s/ready", app_folder, build);
    return stat(path, &found) == 0;
}

/* Loads the libpython of the environment's Python and becomes `python WORDS`. */
static int host(char *const words[], int count) {
    char path[PATH_MAX], line[PATH_MAX], base[PATH_MAX] = "", name[64];
    join(path, sizeof path, "%s/pyvenv.cfg", environment);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("%s is damaged; delete it and open Pomona again.", environment);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "home = ", 7) == 0) {
            line[strcspn(line, "\r\n")] = '\0';
            join(base, sizeof base, "%s", line + 7);
        }
    fclose(file);
    snprintf(name, sizeof name, LIBRARY, python_version);
    join(path, sizeof path, "%s/../lib/%s", base, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) fail("Python cannot be loaded (%s).", dlerror());
    int (*start)(int, char **) = (int (*)(int, char **))dlsym(library, "Py_BytesMain");
    if (start == NULL) fail("%s is no Python.", path);
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    if (arguments == NULL) fail("There is no memory left.");
    join(line, sizeof line, "%s/bin/python", environment);
    arguments[0] = line;
    memcpy(arguments + 1, words, (size_t)count * sizeof *words);
    return start(count + 1, arguments);
}

static void make_folder(const char *path) {
    char part[PATH_MAX];
    join(part, sizeof part, "%s", path);
    for (char *slash = part + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') continue;
        char kept = *slash;
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) fail("The folder %s cannot be made (%s).", part, strerror(errno));
        if (kept == '\0') return;
        *slash = kept;
    }
}

/* Asks a person who double-clicked; whoever gave words on the command line has asked for it. */
static void ask(int count) {
    char words[1024];
    read_line(words, sizeof words, "what-it-fetches");
    fprintf(stderr, "Pomona: %s\n", words);
#ifdef __APPLE__
    if (count > 1) return;
    char *dialog[] = {"/usr/bin/osascript", "-e", "on run argv", "-e",
                      "display dialog (item 1 of argv) with title \"Pomona\" buttons {\"Quit\", \"Set Up\"} "
                      "default button 2 cancel button 1",
                      "-e", "end run", words, NULL};
    if (run(dialog) != 0) exit(0);
#else
    (void)count;
#endif
}

static int set_up(int count, char *words[]) {
    char uv[PATH_MAX], script[PATH_MAX], resources[PATH_MAX], path[PATH_MAX];
    ask(count);
    make_folder(app_folder);
    join(path, sizeof path, "%s/python", app_folder);
    setenv("UV_PYTHON_INSTALL_DIR", path, 1);
    join(path, sizeof path, "%s/cache", app_folder);
    setenv("UV_CACHE_DIR", path, 1);
    setenv("UV_PYTHON_PREFERENCE", "only-managed", 0); /* its own, whatever else is installed */
    setenv("UV_NO_CONFIG", "1", 1);
    join(uv, sizeof uv, "%s/Helpers/uv", contents);
    char *make[] = {uv, "venv", "--quiet", "--clear", "--no-project", "--python", python_version, environment, NULL};
    if (run(make) != 0) fail("Python could not be fetched. Check the connection to the internet and open Pomona again.");
    join(script, sizeof script, "%s/Resources/first_setup.py", contents);
    join(resources, sizeof resources, "%s/Resources", contents);
    char *arguments[6 + count];
    char *given[] = {"-I", script, uv, resources, environment};
    memcpy(arguments, given, sizeof given);
    memcpy(arguments + 5, words + 1, (size_t)(count - 1) * sizeof *words);
    return host(arguments, 5 + count - 1);
}

int main(int count, char *words[]) {
    find_bundle();
    find_environment();
    setenv("POMONA_LAUNCHER", own, 1);
    if (!is_ready()) return set_up(count, words);
    char *arguments[3 + count];
    char *given[] = {"-I", "-m", "pomona"};
    memcpy(arguments, given, sizeof given);
    memcpy(arguments + 3, words + 1, (size_t)(count - 1) * sizeof *words);
    return host(arguments, 3 + count - 1);
}
