/* SPDX-License-Identifier: Apache-2.0 */
/* The module `kohort.native._codec`: three types, made anew for each interpreter. */

#include "codec.h"

typedef struct {
    PyTypeObject *layout_type;
    ColumnsClass columns;
} State;

PyTypeObject *
layout_type_of(PyTypeObject *type)
{
    return ((State *)PyType_GetModuleState(type))->layout_type;
}

const ColumnsClass *
columns_class_of(PyTypeObject *type)
{
    return &((State *)PyType_GetModuleState(type))->columns;
}

/* columns_class(cls): arrays that are objects of this class are written from their columns. */
static PyObject *
columns_class(PyObject *module, PyObject *cls)
{
    ColumnsClass *columns = &((State *)PyModule_GetState(module))->columns;
    ColumnsClass found = {NULL, 0, 0};
    if (!PyType_Check(cls)) {
        return PyErr_Format(PyExc_TypeError, "%R is not a class", cls);
    }
    PyObject *of = PyUnicode_FromString("of");
    PyObject *values = PyUnicode_FromString("values");
    bool has_both = of != NULL && values != NULL
                    && find_offset((PyTypeObject *)cls, of, &found.of)
                    && find_offset((PyTypeObject *)cls, values, &found.values);
    Py_XDECREF(of);
    Py_XDECREF(values);
    if (!has_both) {
        return NULL;
    }
    found.type = (PyTypeObject *)Py_NewRef(cls);
    PyTypeObject *former = columns->type;
    *columns = found;
    Py_XDECREF(former);
    Py_RETURN_NONE;
}

static PyTypeObject *
add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

static int
fill(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->layout_type = add_type(module, &layout_spec);
    PyTypeObject *decoder_type = add_type(module, &decoder_spec);
    PyTypeObject *encoder_type = add_type(module, &encoder_spec);
    bool is_whole = state->layout_type != NULL && decoder_type != NULL && encoder_type != NULL;
    Py_XDECREF(decoder_type); /* the module has them */
    Py_XDECREF(encoder_type);
    if (!is_whole) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "REVISION", REVISION);
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->layout_type);
    Py_VISIT(state->columns.type);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->layout_type);
    Py_CLEAR(state->columns.type);
    return 0;
}

static PyMethodDef functions[] = {
    {"columns_class", columns_class, METH_O, "columns_class(cls): the class of columns"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_codec",
    .m_doc = "The codec in C, behind kohort.wire.native_codec.",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC
PyInit__codec(void)
{
    return PyModuleDef_Init(&definition);
}
